// Fills the explanations of errors when they are opened.
"use strict";
for (const place of document.querySelectorAll("[data-error]")) {
  place.parentElement.addEventListener(
    "toggle",
    () => treecrf.renderPanel(place, treecrfData[Number(place.dataset.error)]),
    { once: true },
  );
}
