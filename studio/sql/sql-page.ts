import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function SqlPage() {
  return html`
    <${PageHeader} title=${texts.sql.title} />
    <${Empty}>${texts.placeholder(texts.sql.title)}<//>
  `;
}
