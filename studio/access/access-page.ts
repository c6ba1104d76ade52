import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function AccessPage() {
  return html`
    <${PageHeader} title=${texts.access.title} />
    <${Empty}>${texts.placeholder(texts.access.title)}<//>
  `;
}
