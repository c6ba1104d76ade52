import { Notice } from "../components/notice.ts";
import { Empty, Loading } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { useLoaded } from "../components/use-loaded.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { listProviders } from "./people-api.ts";

export function ProvidersTab() {
  const { value, error, isLoading, reload } = useLoaded((signal) => listProviders(signal), []);
  const { name, kind, issuer, state, signUps, identities } = texts.people.columns;
  const { providers } = texts.people;
  const rows = (value ?? []).map((each) => ({
    key: each.name,
    cells: [
      `${each.title} (${each.name})`,
      each.kind,
      html`<code>${each.issuer}</code>`,
      each.enabled ? providers.enabled : providers.disabled,
      each.sign_ups ? providers.yes : providers.no,
      each.identities,
    ],
  }));
  return html`
    <p class="quiet">${providers.intro}</p>
    ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
    ${!value && isLoading && html`<${Loading} />`}
    ${value?.length === 0 && html`<${Empty}>${providers.none}<//>`}
    ${rows.length > 0 && html`<${PlainTable} label=${texts.people.tabs.providers} heads=${[name, kind, issuer, state, signUps, identities]} rows=${rows} />`}
  `;
}
