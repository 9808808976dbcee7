// Reads the data of the page, which spacy_treecrf/pages/packing.py has packed.
"use strict";
var treecrfData = (() => {
  const { strings, shapes, packed } = JSON.parse(document.getElementById("treecrf-data").textContent);
  const unpack = (value) => {
    if (typeof value === "string") {
      if (value[0] !== "~") return value;
      return value[1] === "~" ? value.slice(1) : strings[parseInt(value.slice(1), 36)];
    }
    if (!Array.isArray(value)) return value;
    const parts = value.slice(1).map(unpack);
    if (value[0] === 0) return parts;
    return Object.fromEntries(shapes[value[0] - 1].map((key, i) => [key, parts[i]]));
  };
  return unpack(packed);
})();
