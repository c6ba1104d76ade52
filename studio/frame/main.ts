import { render } from "preact";
import { startSession } from "../api/session.ts";
import { html } from "../html.ts";
import { startRouter } from "../router.ts";
import { Frame } from "./frame.ts";
import { startTheme } from "./theme.ts";

startTheme();
startRouter();
void startSession();
render(html`<${Frame} />`, document.getElementById("studio")!);
