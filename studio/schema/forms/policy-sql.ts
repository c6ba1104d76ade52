import {
  expression,
  joinName,
  type QualifiedName,
  quoteName,
  quoteNames,
  quoteRole,
  quoteTable,
} from "../../sql-text.ts";

export const POLICY_COMMANDS = ["all", "select", "insert", "update", "delete"] as const;

export type PolicyForm = {
  readonly name: string;
  readonly command: (typeof POLICY_COMMANDS)[number];
  readonly permissive: boolean;
  readonly roles: readonly string[];
  /** SQL of the condition on visible rows. */
  readonly using: string;
  /** SQL of the condition on written rows. */
  readonly check: string;
};

/** Creates a policy, or replaces the one of this name. */
export function createPolicy(table: QualifiedName, policy: PolicyForm): string {
  const { name, command, permissive, roles } = policy;
  const using = command === "insert" ? "" : policy.using.trim();
  const check = command === "select" || command === "delete" ? "" : policy.check.trim();
  const clauses = [
    `create policy ${quoteName(name)} on ${quoteTable(table)}`,
    ...(permissive ? [] : ["as restrictive"]),
    ...(command === "all" ? [] : [`for ${command}`]),
    ...(roles.length === 0 ? [] : [`to ${roles.map(quoteRole).join(", ")}`]),
    ...(using === "" ? [] : [`using (${expression(using)})`]),
    ...(check === "" ? [] : [`with check (${expression(check)})`]),
  ];
  return `${dropPolicy(table, name)}\n${clauses.join(" ")};`;
}

/** Changes a policy, and its name if that differs. */
export function alterPolicy(table: QualifiedName, before: string, policy: PolicyForm): string {
  const dropped = before === policy.name ? [] : [dropPolicy(table, before)];
  return [...dropped, createPolicy(table, policy)].join("\n");
}

export function dropPolicy(table: QualifiedName, name: string): string {
  return `drop policy if exists ${quoteName(name)} on ${quoteTable(table)};`;
}

export function setRowSecurity(table: QualifiedName, { isEnabled }: { readonly isEnabled: boolean }): string {
  return `alter table ${quoteTable(table)} ${isEnabled ? "enable" : "disable"} row level security;`;
}

export const PRIVILEGES = ["select", "insert", "update", "delete"] as const;

export type Privilege = (typeof PRIVILEGES)[number];

/** The privileges on a table by role. */
export type PrivilegeMatrix = Readonly<Record<string, readonly Privilege[]>>;

/** Grants and revokes only the differences. */
export function changeGrants(table: QualifiedName, before: PrivilegeMatrix, after: PrivilegeMatrix): string {
  const roles = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return roles
    .flatMap((role) => {
      const [had, has] = [before[role] ?? [], after[role] ?? []];
      const added = PRIVILEGES.filter((privilege) => has.includes(privilege) && !had.includes(privilege));
      const removed = PRIVILEGES.filter((privilege) => had.includes(privilege) && !has.includes(privilege));
      return [
        ...(added.length > 0 ? [`grant ${added.join(", ")} on ${quoteTable(table)} to ${quoteRole(role)};`] : []),
        ...(removed.length > 0
          ? [`revoke ${removed.join(", ")} on ${quoteTable(table)} from ${quoteRole(role)};`]
          : []),
      ];
    })
    .join("\n");
}

export type PolicyTemplate = "everybody reads" | "owner reads and writes" | "members read and write" | "none";

export const POLICY_TEMPLATES: readonly PolicyTemplate[] = [
  "everybody reads",
  "owner reads and writes",
  "members read and write",
  "none",
];

/** The table with the members of organisations. Only its members may access the rows of an organisation. */
export type Membership = {
  /** The organisation in the protected table. */
  readonly column: string;
  readonly table: QualifiedName;
  /** The organisation in the table of members. */
  readonly organisation: string;
  /** The user in the table of members. */
  readonly user: string;
};

export type TemplateForm = {
  readonly template: PolicyTemplate;
  /** The column with the user that owns the row. */
  readonly owner: string;
  readonly membership: Membership;
  /** The columns that clients may write. */
  readonly writable: readonly string[];
  /** The roles that exist. */
  readonly roles: readonly string[];
};

/** The callers that a template may name. */
const READERS = ["anon", "authenticated"];
const SERVER_ROLE = "service_role";
export const ADMINISTRATOR = "admin";

/** Row-level security with the policies and grants of a template; administrators and servers may do everything. */
export function applyTemplate(table: QualifiedName, form: TemplateForm): string {
  const { template, roles } = form;
  const having = (names: readonly string[]) => names.filter((name) => roles.includes(name));
  const full = (role: string) =>
    roles.includes(role) ? [`grant select, insert, update, delete on ${quoteTable(table)} to ${quoteRole(role)};`] : [];
  const isForAdministrators = template !== "none" && roles.includes(ADMINISTRATOR);
  return [
    setRowSecurity(table, { isEnabled: true }),
    ...templatePolicies(table, form, having),
    ...(isForAdministrators ? [allowAdministrators(table)] : []),
    ...full(SERVER_ROLE),
  ].join("\n");
}

/** Administrators may read and change every row. */
export function allowAdministrators(table: QualifiedName): string {
  const name = joinName(ADMINISTRATOR, "all");
  return [
    createPolicy(table, { ...EVERYTHING, name, roles: [ADMINISTRATOR] }),
    `grant select, insert, update, delete on ${quoteTable(table)} to ${quoteRole(ADMINISTRATOR)};`,
  ].join("\n");
}

const EVERYTHING: Omit<PolicyForm, "name" | "roles"> = {
  command: "all",
  permissive: true,
  using: "true",
  check: "true",
};

function templatePolicies(
  table: QualifiedName,
  { template, owner, membership, writable }: TemplateForm,
  having: (names: readonly string[]) => readonly string[],
): string[] {
  const grant = (privileges: string, names: readonly string[]) => {
    const present = having(names).map(quoteRole);
    return present.length === 0 ? [] : [`grant ${privileges} on ${quoteTable(table)} to ${present.join(", ")};`];
  };
  if (template === "none") return [];
  if (template === "everybody reads") {
    const policy = createPolicy(table, { ...EVERYTHING, name: "select_all", command: "select", roles: [] });
    return [policy, ...grant("select", READERS)];
  }
  const isOwners = template === "owner reads and writes";
  const condition = isOwners ? `${quoteName(owner)} = (select auth.uid())` : membershipCondition(membership);
  const written = quoteNames(writable);
  const columns = writable.length === 0 ? [] : grant(`insert (${written}), update (${written})`, ["authenticated"]);
  return [
    createPolicy(table, {
      ...EVERYTHING,
      name: isOwners ? "all_own" : "all_members",
      roles: having(["authenticated"]),
      using: condition,
      check: condition,
    }),
    ...grant("select, delete", ["authenticated"]),
    ...columns,
  ];
}

export function membershipCondition({ column, table, organisation, user }: Membership): string {
  const member = `member.${quoteName(user)} = (select auth.uid())`;
  return `${quoteName(column)} = any (array(select member.${quoteName(organisation)} from ${quoteTable(table)} as member where ${member}))`;
}
