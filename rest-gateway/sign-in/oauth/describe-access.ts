import { type Catalog, type CatalogTable, exposedTables, hasAnyColumnPrivilege } from "#catalog";
import { type Html, html } from "#rest-gateway/pages";
import { parseDataScope } from "./scopes.ts";

type DescribedAccess = { readonly title: string; readonly detail: Html | null };

const MAX_TABLES = 200;
const WRITES = [
  ["insert", "add"],
  ["update", "change"],
  ["delete", "delete"],
] as const;

/** Describes in plain words the access that the scopes give an application that acts as a user of this role. */
export function describeAccess(scopes: readonly string[], role: string, catalog: Catalog): readonly DescribedAccess[] {
  const data = scopes.flatMap((scope) => parseDataScope(scope) ?? []);
  const has = (action: string) => data.some((scope) => scope.action === action && scope.table === null);
  const single = data.filter(
    ({ action, table }) => table !== null && !has(action) && !(action === "read" && has("write")),
  );
  const whatItKnows = "Know who you are: your name, e-mail address, phone number and what is stored with your account";
  return [
    { title: whatItKnows, detail: null },
    ...(has("read") || has("write")
      ? [{ title: "Read what you may read", detail: tableList(readable(catalog, role)) }]
      : []),
    ...(has("write")
      ? [{ title: "Add, change and delete what you may", detail: tableList(writable(catalog, role)) }]
      : []),
    ...single.map(({ action, table }) => ({
      title: `${action === "read" ? "Read" : "Read, add, change and delete"} what you may of “${table}”`,
      detail: null,
    })),
    ...(data.length === 0 ? [{ title: "Nothing else: it reads and changes no data", detail: null }] : []),
  ];
}

function readable(catalog: Catalog, role: string): readonly string[] {
  return exposedTables(catalog)
    .filter((table) => mayUse(catalog, role, table) && hasAnyColumnPrivilege(catalog, role, "select", table))
    .map(({ name }) => name);
}

function writable(catalog: Catalog, role: string): readonly string[] {
  return exposedTables(catalog).flatMap((table) => {
    if (!mayUse(catalog, role, table)) return [];
    const allowed = WRITES.filter(([privilege]) =>
      privilege === "delete"
        ? catalog.hasPrivilege(role, privilege, table)
        : hasAnyColumnPrivilege(catalog, role, privilege, table),
    );
    return allowed.length === 0 ? [] : [`${table.name}: ${allowed.map(([, action]) => action).join(", ")}`];
  });
}

function mayUse(catalog: Catalog, role: string, table: CatalogTable): boolean {
  const schema = catalog.schemas.get(table.schema);
  return schema !== undefined && catalog.hasPrivilege(role, "usage", schema);
}

function tableList(lines: readonly string[]): Html {
  if (lines.length === 0) return html`<span class="detail">There is nothing.</span>`;
  const shown = lines.slice(0, MAX_TABLES);
  const rest = lines.length - shown.length;
  const title = lines.length === 1 ? "In one table" : `In ${lines.length} tables`;
  return html`<details><summary>${title}</summary><div><ul>${shown.map((line) => html`<li>${line}</li>`)}</ul>
${rest === 0 ? null : html`<p>and ${rest} more</p>`}</div></details>`;
}
