// Shows the texts of the page; a token that is the only one opens by itself.
"use strict";
(() => {
  const place = document.getElementById("texts");
  treecrf.workplace(place, treecrfData)(treecrfData.sequences);
  const explained = place.querySelectorAll(".token.explained");
  if (explained.length === 1) explained[0].click();
})();
