import { useState } from "preact/hooks";
import { useLoaded } from "../api/use-loaded.ts";
import { Button } from "../components/button.ts";
import { Notice } from "../components/notice.ts";
import { Loading, PageHeader } from "../components/page.ts";
import { Tabs } from "../components/tabs.ts";
import { html } from "../html.ts";
import { useSearchParameter } from "../router.ts";
import { texts } from "../texts.ts";
import { BackfillsTab } from "./backfills-tab.ts";
import { BranchesTab } from "./branches-tab.ts";
import { compareInterfaces, readMigrations, rehearse } from "./changes-api.ts";
import { InterfacesTab } from "./interfaces-tab.ts";
import { LostRowsTab } from "./lost-rows-tab.ts";
import { PendingTab } from "./pending-tab.ts";
import { RehearsalTab } from "./rehearsal-tab.ts";
import { useTask } from "./use-task.ts";

const words = texts.changes;
const TABS = (["pending", "rehearsal", "interfaces", "backfills", "branches", "lost-rows"] as const).map((name) => {
  return { name, title: words.tabs[name] };
});

/** The pending changes, the sessions that they block, and the clients that they break. Tasks keep running while another tab is shown. */
export function ChangesPage() {
  const [name, setName] = useSearchParameter("tab");
  const current = TABS.find((tab) => tab.name === name)?.name ?? "pending";
  const { value: list, error, isLoading, reload } = useLoaded(readMigrations, []);
  const [round, setRound] = useState(0);
  const reloadAll = () => {
    reload();
    setRound(round + 1);
  };
  const rehearsal = useTask(rehearse);
  const comparison = useTask(compareInterfaces);
  const ofMigrations = list && {
    pending: html`<${PendingTab} list=${list} onUndone=${reload} />`,
    rehearsal: html`<${RehearsalTab} list=${list} task=${rehearsal} />`,
    interfaces: html`<${InterfacesTab} list=${list} task=${comparison} />`,
  };
  const others = {
    backfills: html`<${BackfillsTab} key=${round} />`,
    branches: html`<${BranchesTab} key=${round} />`,
    "lost-rows": html`<${LostRowsTab} key=${round} />`,
  };
  const isOfMigrations = !(current in others);
  return html`
    <${PageHeader} title=${words.title}>
      <${Button} icon="refresh" busy=${isLoading} onClick=${reloadAll}>${words.reload}<//>
    <//>
    <${Tabs} label=${words.title} tabs=${TABS} current=${current} onChange=${(chosen: string) => setName(chosen)}>
      <div class="page-body stack">
        ${error && html`<${Notice} kind="error" error=${error} onRetry=${reload} />`}
        ${!list && isLoading && isOfMigrations && html`<${Loading} />`}
        ${{ ...ofMigrations, ...others }[current]}
      </div>
    <//>
  `;
}
