// site.js - buttons (the contents on a phone, light or dark, the copy of a block of code) and the kinds of what the search finds.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = (() => {
    try {
      return localStorage;
    } catch {
      return {}; // a page from a file, in a browser that keeps nothing for files
    }
  })();
  const kinds = [[/^reference\//, "API"], [/^files\/examples/, "example"], [/^files\//, "source"], [/^internals\//, "maintainers"], [/^/, "page"]];

  // A page from a file may have no clipboard of its own.
  const copied = async text => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.body.appendChild(document.createElement("textarea"));
      area.value = text;
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  const addCopyButtons = () => {
    for (const block of document.querySelectorAll("[class^=highlight-]:not(.highlight-text) > .highlight")) {
      const button = block.appendChild(document.createElement("button"));
      Object.assign(button, { type: "button", className: "copy", textContent: "Copy" });
      button.addEventListener("click", async () => {
        await copied(block.querySelector("pre").textContent);
        button.textContent = "Copied";
        setTimeout(() => (button.textContent = "Copy"), 1500);
      });
    }
  };

  // Sphinx adds a hit first and its excerpt later, the same one for the page and for a section of it.
  const nameHits = results => {
    for (const link of results.querySelectorAll("ul.search > li > a:first-child")) {
      const kind = document.createElement("span");
      kind.className = "kind";
      kind.textContent = kinds.find(([path]) => path.test(link.getAttribute("href")))[1];
      link.before(kind);
    }
    const seen = new Set();
    for (const excerpt of results.querySelectorAll("p.context")) {
      if (seen.has(excerpt.textContent)) excerpt.remove();
      seen.add(excerpt.textContent);
    }
  };

  root.classList.add("scripted");
  if (kept.scheme) root.style.colorScheme = kept.scheme;
  document.addEventListener("DOMContentLoaded", () => {
    const menu = document.getElementById("menu");
    menu.addEventListener("click", () => menu.setAttribute("aria-expanded", root.classList.toggle("open")));
    document.getElementById("scheme").addEventListener("click", () => {
      const dark = root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      kept.scheme = root.style.colorScheme = dark === "dark" ? "light" : "dark";
    });
    addCopyButtons();
    // A name breaks behind an underscore only.
    for (const name of document.querySelectorAll(".sections code span.pre")) name.innerHTML = name.innerHTML.replaceAll("_", "_<wbr>");
    const results = document.getElementById("search-results");
    if (results) new MutationObserver(() => nameHits(results)).observe(results, { childList: true, subtree: true });
    document.querySelector(".contents a.current")?.scrollIntoView({ block: "nearest" });
  });
})();
