"use strict";
// Shows the progress of an import without a reload. What is read aloud changes every tenth only.
const section = document.querySelector(".import-progress");

function state() {
  return section.querySelector(".import-state");
}

function announce() {
  const words = state().querySelector(".said").textContent;
  const tenth = `${Math.floor(state().dataset.percent / 10)} ${state().dataset.finished}`;
  if (section.dataset.tenth !== tenth) {
    section.dataset.tenth = tenth;
    section.querySelector(".announced").textContent = words;
  }
}

async function look() {
  try {
    const answer = await fetch(section.dataset.url, { credentials: "same-origin", redirect: "error" });
    if (answer.ok) {
      section.querySelector(".shown").innerHTML = await answer.text();
      announce();
    }
  } catch {
    // the next look may do better
  }
  watch();
}

function watch() {
  if (state().dataset.finished === "yes") {
    section.querySelector(".cancel").hidden = true;
  } else {
    setTimeout(look, 1000);
  }
}

if (section) {
  watch();
}
