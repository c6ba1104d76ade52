import fc from "fast-check";
import type { Claims } from "../../rest-gateway/table/client.ts";

/** All of them may have other rows. The administrator is a member of `authenticated`. */
export const CALLERS = [
  { role: "anon" },
  { role: "authenticated", sub: "a" },
  { role: "authenticated", sub: "b" },
  { role: "admin", sub: "c" },
  { role: "service_role", sub: "a" },
] as const satisfies readonly Claims[];
export type Caller = (typeof CALLERS)[number];

const ROLES = ["anon", "authenticated", "admin", "service_role"] as const;
export const COLUMNS = ["id", "owner", "level", "note"] as const;
const THING_COLUMNS = [...COLUMNS, "team_id"] as const;

export type TableName = "team" | "thing";
export type Returning = { readonly [table in TableName]: readonly string[] };

/** The grants and policies of two tables, of which the second refers to the first, and who may call the function of their defaults. */
export type AccessRules = {
  readonly teams: TableRules;
  readonly things: TableRules;
  readonly callsDefault: readonly string[];
};

type TableRules = {
  readonly grants: readonly (Grant | null)[];
  readonly policies: readonly Policy[];
};

/** The columns of each verb, or all of them. */
type Grant = { readonly [verb in "select" | "insert" | "update"]: readonly string[] | "all" } & {
  readonly delete: boolean;
};

type Policy = {
  readonly command: "all" | "select" | "insert" | "update" | "delete";
  readonly roles: string;
  readonly isPermissive: boolean;
  readonly using: string;
  readonly check: string;
};

const CLAIM = "(nullif(current_setting('request.jwt.claims', true), '')::json ->> 'sub')";
const ROW_CONDITIONS = [
  "true",
  "true",
  `owner = ${CLAIM}`,
  `owner is distinct from ${CLAIM}`,
  "level > 1",
  "id < 3",
  "current_user <> 'admin'",
  "pg_has_role(current_user, 'authenticated', 'member')",
  "note is null",
];

const conditions = (more: readonly string[]): fc.Arbitrary<string> => {
  const atom = fc.constantFrom(...ROW_CONDITIONS, ...more);
  return fc.oneof(
    { arbitrary: atom, weight: 4 },
    { arbitrary: fc.tuple(atom, atom).map(([one, other]) => `(${one}) or (${other})`), weight: 1 },
    { arbitrary: fc.tuple(atom, atom).map(([one, other]) => `(${one}) and not (${other})`), weight: 1 },
  );
};

const grantOf = (columns: readonly string[]): fc.Arbitrary<Grant> => {
  const some = fc.oneof(
    { arbitrary: fc.constant("all" as const), weight: 6 },
    { arbitrary: fc.subarray([...columns]), weight: 2 },
  );
  return fc.record({ select: some, insert: some, update: some, delete: fc.nat(4).map((number) => number > 0) });
};

const tableRules = (columns: readonly string[], more: readonly string[]): fc.Arbitrary<TableRules> => {
  const policy: fc.Arbitrary<Policy> = fc.record({
    command: fc.constantFrom("all", "all", "select", "insert", "update", "delete"),
    roles: fc.constantFrom("public", "public", "anon", "authenticated", "admin"),
    isPermissive: fc.nat(4).map((number) => number > 0),
    using: conditions(more),
    check: conditions(more),
  });
  const grant = fc.option(grantOf(columns), { freq: 8 });
  return fc.record({
    grants: fc.tuple(...ROLES.map(() => grant)),
    policies: fc.array(policy, { minLength: 1, maxLength: 5 }),
  });
};

/** A policy of the things looks at the teams with the caller's rights. */
const OF_TEAM = `exists (select from public.team_$$ as t where t.id = team_id and t.owner = ${CLAIM})`;

export const accessRules: fc.Arbitrary<AccessRules> = fc.record({
  teams: tableRules(COLUMNS, []),
  things: tableRules(THING_COLUMNS, [OF_TEAM]),
  callsDefault: fc.subarray([...ROLES], { minLength: 1 }),
});

/** Tables of that number, with these rules. */
export function sqlOf({ teams, things, callsDefault }: AccessRules, number: number): string {
  const columns = `id int primary key, owner text default ${CLAIM}, level int default private_defaults.level_${number}(), note text`;
  return `
    create function private_defaults.level_${number}() returns int language sql as 'select 1';
    revoke execute on function private_defaults.level_${number}() from public;
    grant execute on function private_defaults.level_${number}() to ${callsDefault.join()};
    create table public.team_${number} (${columns});
    create table public.thing_${number} (${columns}, team_id int references public.team_${number});
    create index on public.thing_${number} (team_id);
    comment on table public.thing_${number} is '@nestedInsert';
    ${rulesSql(`team_${number}`, teams)}
    ${rulesSql(`thing_${number}`, things)}`.replaceAll("$$", String(number));
}

function rulesSql(table: string, { grants, policies }: TableRules): string {
  const granted = grants.flatMap((grant, index) => (grant ? grantsSql(table, ROLES[index]!, grant) : []));
  const made = policies.map(({ command, roles, isPermissive, using, check }, index) => {
    const reads = command === "insert" ? "" : ` using (${using})`;
    const writes = command === "select" || command === "delete" ? "" : ` with check (${check})`;
    const kind = isPermissive ? "permissive" : "restrictive";
    return `create policy p_${index} on public.${table} as ${kind} for ${command} to ${roles}${reads}${writes};`;
  });
  return `alter table public.${table} enable row level security; ${granted.join(" ")} ${made.join(" ")}`;
}

function grantsSql(table: string, role: string, { delete: deletes, ...byColumn }: Grant): string[] {
  const verbs = Object.entries(byColumn).flatMap(([verb, columns]) =>
    columns === "all" ? [verb] : columns.length > 0 ? [`${verb} (${columns.join()})`] : [],
  );
  const all = deletes ? [...verbs, "delete"] : verbs;
  return all.length > 0 ? [`grant ${all.join()} on public.${table} to ${role};`] : [];
}

/** The rows of the tables of that number before each write. */
export function rowsSql(number: number): string {
  return `begin; set local session_replication_role = replica;
    delete from public.thing_${number}; delete from public.team_${number};
    insert into public.team_${number} (id, owner, level) values (1, 'a', 1), (2, 'b', 2), (3, null, 3);
    insert into public.thing_${number} (id, owner, level, note, team_id)
      values (1, 'a', 1, null, 1), (2, 'b', 2, 'x', 1), (3, 'b', 0, null, 2), (4, null, 3, 'y', null);
    commit`;
}
