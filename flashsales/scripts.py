"""What Redis does in one piece, so that no rival comes between.

A gate is one hash, so it is on one node of a cluster:

``sale``        which sale it belongs to
``left``        units that nobody has; absent while the gate is being loaded: ask the database
``starts``      when the sale begins, microseconds
``u:<user>``    ``<state>:<at>:<mark>:<token>``: one entry for each user who was let in

States: ``p`` let in, and not committed yet; ``h`` has a ticket and holds a unit; ``x`` has a ticket that came
to nothing. ``at`` is when the entry was written, by Redis's own clock: microseconds, 16 digits until 2286, so
that they compare as text.
"""

from typing import Final

_COMMON: Final = """
local gate = KEYS[1]

local function now()
    local time = redis.call('TIME')
    return time[1] * 1000000 + time[2]
end

local function parse(entry)
    if not entry then return nil end
    return string.match(entry, '^(%a):(%d+):(%x*):(%x*)$')
end

local function spell(state, at, mark, token)
    return string.format('%s:%.0f:%s:%s', state, at, mark, token)
end

local function units(state)
    return (state == 'p' or state == 'h') and 1 or 0
end

local function take(number)
    if number ~= 0 and redis.call('HEXISTS', gate, 'left') == 1 then
        redis.call('HINCRBY', gate, 'left', -number)
    end
end
"""

ADMIT: Final = f"""{_COMMON}
local user, mark, token = 'u:' .. ARGV[1], ARGV[2], ARGV[3]
local left = redis.call('HGET', gate, 'left')
if not left then return 'missing' end

-- A repeat first: the buyer of the last unit must not hear that it is sold out.
local state, _, known = parse(redis.call('HGET', gate, user))
if state then
    if known == mark then return 'repeat' end
    return (state == 'h' and 'already_bought') or (state == 'x' and 'sold_out') or 'undecided'
end
if now() < tonumber(redis.call('HGET', gate, 'starts')) then return 'not_begun' end
if tonumber(left) <= 0 then return 'sold_out' end
take(1)
redis.call('HSET', gate, user, spell('p', now(), mark, token))
return 'admitted'
"""
"""ARGV: user, mark, token. Returns one of the verdicts."""

GIVE_BACK: Final = f"""{_COMMON}
local user = 'u:' .. ARGV[1]
local state, _, mark, token = parse(redis.call('HGET', gate, user))
if state ~= 'p' or mark ~= ARGV[2] or token ~= ARGV[3] then return 0 end
redis.call('HDEL', gate, user)
take(-1)
return 1
"""
"""ARGV: user, mark, token. Once, and only what this token took."""

RECORD: Final = f"""{_COMMON}
local user, next_state, mark = 'u:' .. ARGV[2], ARGV[3], ARGV[4]
if redis.call('HGET', gate, 'sale') ~= ARGV[1] then return 0 end
local state = parse(redis.call('HGET', gate, user))
if state == 'x' then return 0 end
take(units(next_state) - units(state))
redis.call('HSET', gate, user, spell(next_state, now(), mark, ''))
return 1
"""
"""ARGV: sale, user, state, mark. Says what is committed; a late ``h`` does not undo an ``x``."""

BEGIN: Final = f"""{_COMMON}
if redis.call('HGET', gate, 'sale') ~= ARGV[1] then
    redis.call('DEL', gate)
    redis.call('HSET', gate, 'sale', ARGV[1])
end
redis.call('PEXPIREAT', gate, ARGV[2])
return string.format('%.0f', now())
"""
"""ARGV: sale, end of the sale in milliseconds. From here on entries are kept, whatever is loaded later."""

LOAD: Final = f"""{_COMMON}
local sale, since, patience, all, starts = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
if redis.call('HGET', gate, 'sale') ~= sale then return false end
local rank = {{p = 1, h = 2, x = 3}}
local alive_since = string.format('%.0f', now() - patience)
local entries = cjson.decode(ARGV[7])

-- Written since the database was read, or by a request that may still be at work: the further one counts.
local fields = redis.call('HGETALL', gate)
for i = 1, #fields, 2 do
    local name, entry = fields[i], fields[i + 1]
    local state, written = string.sub(entry, 1, 1), string.sub(entry, 3, 18)
    if string.sub(name, 1, 2) == 'u:' and (written >= since or state == 'p' and written > alive_since) then
        local other = entries[name]
        if not other or rank[string.sub(other, 1, 1)] < rank[state] then entries[name] = entry end
    end
end

local left, batch = tonumber(all), {{}}
redis.call('DEL', gate)
for name, entry in pairs(entries) do
    left = left - units(string.sub(entry, 1, 1))
    batch[#batch + 1] = name
    batch[#batch + 1] = entry
    if #batch >= 1000 then
        redis.call('HSET', gate, unpack(batch))
        batch = {{}}
    end
end
redis.call('HSET', gate, 'sale', sale, 'starts', starts, 'left', string.format('%.0f', left), unpack(batch))
redis.call('PEXPIREAT', gate, ARGV[6])
return left
"""
"""ARGV: sale, what BEGIN returned, patience in microseconds, units, start in microseconds, end in
milliseconds, JSON of ``{"u:<user>": entry}`` read from the database after BEGIN."""
