import { useEffect } from "preact/hooks";
import { type DatabaseDescription, findTable } from "../api/catalog.ts";
import { sessionState, viewedCaller } from "../api/session.ts";
import { useCatalog } from "../api/use-catalog.ts";
import { lazy } from "../components/lazy.ts";
import { Notice } from "../components/notice.ts";
import { Loading, PageHeader } from "../components/page.ts";
import { html } from "../html.ts";
import { pathTo, useSegments } from "../router.ts";
import { useStore } from "../store.ts";
import { texts } from "../texts.ts";
import { storeRecentTable } from "./recent-tables.ts";
import { findObstacle, grantStatements } from "./rows/table-access.ts";
import { MissingGrant } from "./table-errors.ts";
import { TableList } from "./table-list.ts";
import { TableView } from "./table-view.ts";
import { TablesStart } from "./tables-start.ts";

const CreateTableButton = lazy(async () => (await import("../schema/forms/schema-menus.ts")).CreateTableButton);

export function TablesPage() {
  const catalog = useCatalog();
  const state = useStore(sessionState);
  const [, schema, name] = useSegments();
  if (state.status !== "signed-in") return null;
  const role = state.viewAs?.role ?? state.session.role;
  const { project } = state.session.studio;
  if (catalog.error) return html`<${Notice} kind="error" error=${catalog.error} onRetry=${catalog.reload} />`;
  if (!catalog.value) return html`<${PageHeader} title=${texts.tables.title} /><${Loading} />`;
  const chosen = schema !== undefined && name !== undefined ? { schema, name } : null;
  return html`
    ${!chosen && html`<${PageHeader} title=${texts.tables.title}><${CreateTableButton} catalog=${catalog.value} /><//>`}
    <div class=${chosen ? "tables chosen" : "tables"}>
      <${TableList} catalog=${catalog.value} role=${role} chosen=${chosen} />
      <div class="table-pane">
        ${
          chosen
            ? html`
                <a class="back-to-tables" href=${pathTo("tables")}>${texts.tables.allTables}</a>
                <${ChosenTable} catalog=${catalog.value} project=${project} role=${role} ...${chosen} caller=${viewedCaller(state)} onGranted=${catalog.reload} />
              `
            : html`<${TablesStart} catalog=${catalog.value} project=${project} />`
        }
      </div>
    </div>
  `;
}

type ChosenTableProps = {
  readonly catalog: DatabaseDescription;
  readonly project: string;
  readonly role: string;
  readonly schema: string;
  readonly name: string;
  /** The caller; the rows of another caller are read again. */
  readonly caller: string;
  readonly onGranted: () => void;
};

function ChosenTable({ catalog, project, role, schema, name, caller, onGranted }: ChosenTableProps) {
  const table = findTable(catalog, { schema, name });
  useEffect(() => {
    if (table) storeRecentTable(project, table);
  }, [project, schema, name, table === undefined]);
  if (!table) {
    return html`
      <${PageHeader} title=${name} />
      <${Notice} kind="warning" title=${texts.tables.unknownTable(`${schema}.${name}`)} />
    `;
  }
  const obstacle = findObstacle(catalog, role, table);
  if (obstacle === null) {
    return html`<${TableView} key=${`${schema}.${name}`} catalog=${catalog} role=${role} table=${table} caller=${caller} onGranted=${onGranted} />`;
  }
  const sql = grantStatements(catalog, role, table, { privilege: "select" });
  return html`
    <${PageHeader} title=${name} />
    <${Notice} kind="warning" title=${texts.tables.obstacles[obstacle](role)}>
      ${obstacle === "no privilege" ? html`<${MissingGrant} role=${role} table=${table} sql=${sql} onGranted=${onGranted} />` : html`<p>${texts.tables.exposeSchema(schema)}</p>`}
    <//>
  `;
}
