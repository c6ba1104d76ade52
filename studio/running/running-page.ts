import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function RunningPage() {
  return html`
    <${PageHeader} title=${texts.running.title} />
    <${Empty}>${texts.placeholder(texts.running.title)}<//>
  `;
}
