// Shows the texts of the page.
"use strict";
treecrf.workplace(document.getElementById("texts"), treecrfData)(treecrfData.sequences);
