import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function TablesPage() {
  return html`
    <${PageHeader} title=${texts.tables.title} />
    <${Empty}>${texts.placeholder(texts.tables.title)}<//>
  `;
}
