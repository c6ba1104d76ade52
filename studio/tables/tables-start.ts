import { type DatabaseDescription, findTable, nameKey, shortName } from "../api/catalog.ts";
import { Icon } from "../components/icon.ts";
import { Empty } from "../components/page.ts";
import { html } from "../html.ts";
import { pathTo } from "../router.ts";
import { texts } from "../texts.ts";
import { readRecentTables } from "./recent-tables.ts";

type TablesStartProps = { readonly catalog: DatabaseDescription; readonly project: string };

/** The pane until a table is chosen: it lists the tables that were opened last. */
export function TablesStart({ catalog, project }: TablesStartProps) {
  const recent = readRecentTables(project).filter((name) => findTable(catalog, name) !== undefined);
  if (recent.length === 0) return html`<${Empty}>${texts.tables.choose}<//>`;
  return html`
    <nav class="recent-tables link-list stack" aria-labelledby="recent-tables">
      <h2 id="recent-tables">${texts.tables.recent}</h2>
      <ul>
        ${recent.map(
          (name) => html`
            <li key=${nameKey(name)}>
              <a href=${pathTo("tables", name.schema, name.name)}><${Icon} name="table" />${shortName(name)}</a>
            </li>
          `,
        )}
      </ul>
    </nav>
  `;
}
