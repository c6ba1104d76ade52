import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function TryPage() {
  return html`
    <${PageHeader} title=${texts.try.title} />
    <${Empty}>${texts.placeholder(texts.try.title)}<//>
  `;
}
