import { useLoaded } from "../api/use-loaded.ts";
import { Notice } from "../components/notice.ts";
import { Empty, Loading, PageHeader } from "../components/page.ts";
import { PlainTable } from "../components/plain-table.ts";
import { Tabs } from "../components/tabs.ts";
import { html } from "../html.ts";
import { navigate, pathTo, useSegments } from "../router.ts";
import { texts } from "../texts.ts";
import { AuditTab } from "./audit-tab.ts";
import { EmailsTab } from "./emails-tab.ts";
import { KeysTab } from "./keys-tab.ts";
import { listProviders } from "./people-api.ts";
import { SettingsTab } from "./settings-tab.ts";
import { TemplatesTab } from "./templates-tab.ts";
import { UserView } from "./user-view.ts";
import { UsersTab } from "./users-tab.ts";

const TABS = {
  users: UsersTab,
  keys: KeysTab,
  providers: ProvidersTab,
  settings: SettingsTab,
  templates: TemplatesTab,
  emails: EmailsTab,
  audit: AuditTab,
} as const;

type TabName = keyof typeof TABS;

const isTab = (name: string): name is TabName => Object.hasOwn(TABS, name);

/** `/studio/people/<tab>`, and `/studio/people/users/<id>`. */
export function PeoplePage() {
  const [, segment = "users", id] = useSegments();
  const current = isTab(segment) ? segment : "users";
  const Content = TABS[current];
  const tabs = Object.entries(texts.people.tabs).map(([name, title]) => ({ name, title }));
  return html`
    <${PageHeader} title=${texts.people.title} />
    <${Tabs}
      label=${texts.people.title}
      tabs=${tabs}
      current=${current}
      onChange=${(name: string) => navigate(pathTo("people", name))}
    >
      <div class="page-body stack">
        ${current === "users" && id !== undefined ? html`<${UserView} key=${id} id=${id} />` : html`<${Content} />`}
      </div>
    <//>
  `;
}

function ProvidersTab() {
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
