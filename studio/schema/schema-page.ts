import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function SchemaPage() {
  return html`
    <${PageHeader} title=${texts.schema.title} />
    <${Empty}>${texts.placeholder(texts.schema.title)}<//>
  `;
}
