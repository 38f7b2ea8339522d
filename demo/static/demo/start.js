// Copy buttons. Without this file the commands are still there to be selected.
const announcement = document.getElementById("status");
const SHOWN = 2000; // milliseconds

async function copy(code) {
  if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent);
  select(code); // not a secure address, such as this machine's name on the local network
  if (!document.execCommand("copy")) throw new Error("not allowed");
}

function select(code) {
  getSelection().selectAllChildren(code);
}

function say(button, text) {
  const label = button.firstElementChild;
  label.textContent = text;
  announcement.textContent = "";
  requestAnimationFrame(() => (announcement.textContent = text)); // also where it says the same again
  clearTimeout(button.timer);
  button.timer = setTimeout(() => (label.textContent = button.dataset.copy), SHOWN);
}

for (const button of document.querySelectorAll(".copy")) {
  const code = document.getElementById(button.getAttribute("aria-controls"));
  button.addEventListener("click", () =>
    copy(code).then(
      () => say(button, button.dataset.copied),
      () => { select(code); say(button, button.dataset.selected); },
    ),
  );
  button.disabled = false;
}
