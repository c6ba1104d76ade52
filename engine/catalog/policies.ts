import type { Grants } from "./grants.ts";
import type { Read } from "./reader.ts";

export type Policy = {
  readonly name: string;
  readonly command: "all" | "select" | "insert" | "update" | "delete";
  /** Rows pass when one permissive policy lets them and no restrictive one stops them. */
  readonly permissive: boolean;
  /** `public` for everybody. */
  readonly roles: readonly string[];
  readonly using: string | null;
  readonly check: string | null;
  readonly comment: string | null;
  /** What was granted on the schemas that its expressions name. A policy is checked without them, and its text is not. */
  readonly schemaGrants: readonly Grants[];
};

export type PolicyRow = Omit<Policy, "command" | "schemaGrants"> & {
  table: number;
  command: keyof typeof COMMANDS;
  schemaAcls: string[];
};

type GrantsOf = (acl: string | null) => Grants;

const COMMANDS = { "*": "all", r: "select", a: "insert", w: "update", d: "delete" } as const;

const POLICIES = `
  select p.polrelid as table, p.polname as name, p.polcmd as command, p.polpermissive as permissive,
    array(select case oid when 0 then 'public' else pg_get_userbyid(oid)::text end from unnest(p.polroles) oid order by 1) as roles,
    pg_get_expr(p.polqual, p.polrelid) as using, pg_get_expr(p.polwithcheck, p.polrelid) as check,
    d.description as comment,
    array(
      select distinct array_to_string(coalesce(n.nspacl, acldefault('n', n.nspowner)), E'\\n')
      from pg_depend x
        left join pg_proc f on x.refclassid = 'pg_proc'::regclass and f.oid = x.refobjid
        left join pg_class t on x.refclassid = 'pg_class'::regclass and t.oid = x.refobjid
        left join pg_operator o on x.refclassid = 'pg_operator'::regclass and o.oid = x.refobjid
        left join pg_type y on x.refclassid = 'pg_type'::regclass and y.oid = x.refobjid
        join pg_namespace n on n.oid = coalesce(f.pronamespace, t.relnamespace, o.oprnamespace, y.typnamespace)
      where x.classid = 'pg_policy'::regclass and x.objid = p.oid
      order by 1
    ) as "schemaAcls"
  from pg_policy p join pg_class c on c.oid = p.polrelid
    left join pg_description d on d.classoid = 'pg_policy'::regclass and d.objoid = p.oid
  where c.relnamespace = any ($1)
  order by p.polrelid, p.polname`;

export function readPolicies(read: Read, schemas: readonly number[]): Promise<PolicyRow[]> {
  return read("policies", POLICIES, [schemas]);
}

export function toPolicy({ table: _, command, schemaAcls, ...policy }: PolicyRow, grantsOf: GrantsOf): Policy {
  return { ...policy, command: COMMANDS[command], schemaGrants: schemaAcls.map(grantsOf) };
}
