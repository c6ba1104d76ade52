import { Empty, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

export function PeoplePage() {
  return html`
    <${PageHeader} title=${texts.people.title} />
    <${Empty}>${texts.placeholder(texts.people.title)}<//>
  `;
}
