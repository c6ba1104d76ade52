import { render } from "preact";
import { startSession } from "./api/session.ts";
import { Frame } from "./frame/frame.ts";
import { startRouter } from "./frame/router.ts";
import { startTheme } from "./frame/theme.ts";
import { html } from "./html.ts";

startTheme();
startRouter();
void startSession();
render(html`<${Frame} />`, document.getElementById("studio")!);
