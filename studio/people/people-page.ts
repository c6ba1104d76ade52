import { PageHeader } from "../components/page.ts";
import { Tabs } from "../components/tabs.ts";
import { navigate, pathTo, useSegments } from "../frame/router.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";
import { AuditTab } from "./audit-tab.ts";
import { EmailsTab } from "./emails-tab.ts";
import { KeysTab } from "./keys-tab.ts";
import { ProvidersTab } from "./providers-tab.ts";
import { UserView } from "./user-view.ts";
import { UsersTab } from "./users-tab.ts";

const TABS = { users: UsersTab, keys: KeysTab, providers: ProvidersTab, emails: EmailsTab, audit: AuditTab } as const;

export type TabName = keyof typeof TABS;

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
