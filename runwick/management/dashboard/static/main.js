// Starts what the page can use. Every page works without it: links lead on and forms post.
import { startCopying } from "./copying.js";
import { startForms } from "./forms.js";
import { startMatching } from "./matching.js";
import { startPolling } from "./polling.js";
import { startSelecting } from "./selecting.js";
import { startTheme } from "./theme.js";

// Where the navigation does not fit, the page that is shown is brought into its sight. `scrollIntoView` would do it too, but
// then the first Tab would no longer lead to the skip link.
const here = document.querySelector(".pages a[aria-current]");
const pages = here?.closest(".pages");
if (here && here.offsetLeft + here.offsetWidth > pages.clientWidth) pages.scrollLeft = here.offsetLeft - pages.clientWidth / 3;

startTheme();
startForms();
startPolling();
startSelecting();
startMatching();
startCopying();
