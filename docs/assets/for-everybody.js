// What axe-core finds in the theme: the search has no name, and what scrolls sideways is out of reach of keys.
// The theme wraps tables late, and makes code unreachable on touch screens again and again.
document.querySelector(".md-search").setAttribute("aria-label", "Search");
const reach = () => {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (box.scrollWidth > box.clientWidth && box.tabIndex < 0) box.tabIndex = 0;
  }
};
new MutationObserver(reach).observe(document.querySelector("article"), {
  attributeFilter: ["open", "tabindex"],
  childList: true,
  subtree: true,
});
window.addEventListener("resize", reach);
reach();
