for (const browser of document.querySelectorAll(".browser")) {
  const controls = browser.querySelector(".filters"), shown = browser.querySelector(".shown");
  const examples = [...browser.querySelectorAll("details.example")];
  const apply = () => {
    const kind = controls.querySelector(".kind").value, arm = controls.querySelector(".arm").value;
    const words = controls.querySelector(".words").value.toLowerCase();
    let count = 0;
    for (const one of examples) {
      const fits = (!kind || one.dataset.kinds.split("|").includes(kind)) && (!arm || one.dataset.off.split(" ").includes(arm))
        && (!words || one.textContent.toLowerCase().includes(words));
      one.hidden = !fits;
      count += fits;
    }
    shown.textContent = `${count} of ${examples.length} listed`;
  };
  controls.addEventListener("input", apply);
  controls.hidden = false;
  apply();
}
