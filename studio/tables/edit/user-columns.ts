import {
  type DatabaseDescription,
  type DescribedColumn,
  type DescribedForeignKey,
  type DescribedName,
  findTable,
  isSameName,
} from "../../api/catalog.ts";

/** The accounts, by Supabase's name. Other tables of users are found by foreign keys. */
const ACCOUNTS: DescribedName = { schema: "auth", name: "users" };
const CALLER = { schema: "auth", name: "uid" };
const CALLER_DEFAULT = /\bauth\.uid\(\)/;

type UserColumn = Pick<DescribedColumn, "name" | "default" | "base_type">;
type TableWithKeys = { readonly foreign_keys: readonly Pick<DescribedForeignKey, "columns" | "target">[] };
type Catalog = Pick<DatabaseDescription, "tables" | "functions">;

/** True if a new row without a value gets the user who inserts it, which is null if there is none. */
export function isCallerByDefault({ default: expression }: Pick<DescribedColumn, "default">): boolean {
  return expression !== null && CALLER_DEFAULT.test(expression);
}

/** True if the values of the column identify users: by its default, or as a key of the accounts or of a table that shares their key. */
export function identifiesUser(catalog: Catalog, table: TableWithKeys, column: UserColumn): boolean {
  if (isCallerByDefault(column)) return true;
  return keysOf(table, column.name).some(({ target }) => isUserTable(catalog, target));
}

/** True if the column refers to users by their uuid, and not by the key of their account. */
export function refersByUuid({ functions }: Pick<Catalog, "functions">, { base_type: type }: UserColumn): boolean {
  if (type === "uuid") return true;
  // A text can hold both: it holds what policies compare it with.
  const isText = !/^(bigint|integer|numeric)$/.test(type);
  return isText && functions.some((each) => isSameName(each, CALLER) && each.returns === "uuid");
}

/** True for the accounts, for a table whose key theirs refers to, and for one whose key refers to them, such as profiles. */
function isUserTable(catalog: Catalog, name: DescribedName): boolean {
  if (isSameName(name, ACCOUNTS)) return true;
  const shares = (one: DescribedName, other: DescribedName) => {
    const table = findTable(catalog, one);
    const [key] = table?.primary_key.length === 1 ? table.primary_key : [];
    return key !== undefined && keysOf(table!, key).some(({ target }) => isSameName(target, other));
  };
  return shares(ACCOUNTS, name) || shares(name, ACCOUNTS);
}

function keysOf({ foreign_keys: keys }: TableWithKeys, column: string) {
  return keys.filter(({ columns }) => columns.length === 1 && columns[0] === column);
}
