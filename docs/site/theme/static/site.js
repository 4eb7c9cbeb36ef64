// site.js - the two buttons: the contents on a phone, and light or dark for all pages.
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
  root.classList.add("scripted");
  if (kept.scheme) root.style.colorScheme = kept.scheme;
  document.addEventListener("DOMContentLoaded", () => {
    const menu = document.getElementById("menu");
    menu.addEventListener("click", () => menu.setAttribute("aria-expanded", root.classList.toggle("open")));
    document.getElementById("scheme").addEventListener("click", () => {
      const dark = root.style.colorScheme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
      kept.scheme = root.style.colorScheme = dark === "dark" ? "light" : "dark";
    });
    document.querySelector(".contents a.current")?.scrollIntoView({ block: "nearest" });
  });
})();
