import {
  type DatabaseDescription,
  type DescribedFunction,
  type DescribedTable,
  hasPrivilegeOnAny,
  shortName,
} from "../api/catalog.ts";

/** What requests can be tried on. */
export type Subject =
  | { readonly kind: "table"; readonly table: DescribedTable }
  | { readonly kind: "function"; readonly called: DescribedFunction };

/** The segment of the page about broadcast and presence, which belong to no table. */
export const CHANNEL = "channel";

const TABLE_OPERATIONS = ["read", "insert", "update", "delete", "watch"] as const;
export type Operation = (typeof TABLE_OPERATIONS)[number] | "call";

const PRIVILEGES: Readonly<Record<Exclude<Operation, "watch" | "call">, string>> = {
  read: "select",
  insert: "insert",
  update: "update",
  delete: "delete",
};

type SubjectsCatalog = Pick<DatabaseDescription, "roles" | "schemas" | "tables" | "functions">;

/** The exposed tables and functions that the role may use. */
export function listSubjects(catalog: SubjectsCatalog, role: string): Subject[] {
  const tables = catalog.tables.filter((table) => table.exposed && operationsOf(catalog, role, table).length > 0);
  const functions = catalog.functions.filter(
    (called) =>
      called.exposed && called.kind === "function" && called.returns !== "trigger" && mayCall(catalog, role, called),
  );
  return [
    ...tables.map((table): Subject => ({ kind: "table", table })),
    ...functions.map((called): Subject => ({ kind: "function", called })),
  ];
}

/** What the role may do with the rows; policies decide which rows those are. */
export function operationsOf(catalog: SubjectsCatalog, role: string, table: DescribedTable): Operation[] {
  const isAllowed = (operation: Exclude<Operation, "watch" | "call">) =>
    (operation === "read" || table.changes.includes(operation)) &&
    hasPrivilegeOnAny(catalog, role, PRIVILEGES[operation], table);
  return TABLE_OPERATIONS.filter((operation) =>
    operation === "watch" ? table.published && isAllowed("read") : isAllowed(operation),
  );
}

/** The segments of its path below `/studio/try`. */
export function segmentsOf(subject: Subject): string[] {
  if (subject.kind === "table") return ["table", subject.table.schema, subject.table.name];
  return ["function", subject.called.schema, subject.called.name, subject.called.signature];
}

export function findSubject(subjects: readonly Subject[], segments: readonly string[]): Subject | undefined {
  // A signature without arguments is an empty segment, which the path leaves out.
  return subjects.find((subject) => segmentsOf(subject).every((segment, index) => segment === (segments[index] ?? "")));
}

export function subjectLabel(subject: Subject): string {
  return subject.kind === "table"
    ? shortName(subject.table)
    : `${shortName(subject.called)}(${subject.called.signature})`;
}

function mayCall({ roles, schemas }: SubjectsCatalog, role: string, called: DescribedFunction): boolean {
  const found = roles.find(({ name }) => name === role);
  if (!found) return false;
  const isGranted = (grants: DescribedFunction["grants"], privilege: string) =>
    grants.some(
      (grant) =>
        (grant.role === "public" || found.inherits.includes(grant.role)) && grant.privileges.includes(privilege),
    );
  const schema = schemas.find(({ name }) => name === called.schema);
  return found.superuser || (isGranted(schema?.grants ?? [], "usage") && isGranted(called.grants, "execute"));
}
