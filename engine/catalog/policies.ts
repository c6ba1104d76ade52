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
};

export type PolicyRow = Omit<Policy, "command"> & { table: number; command: keyof typeof COMMANDS };

const COMMANDS = { "*": "all", r: "select", a: "insert", w: "update", d: "delete" } as const;

const POLICIES = `
  select p.polrelid as table, p.polname as name, p.polcmd as command, p.polpermissive as permissive,
    array(select case oid when 0 then 'public' else pg_get_userbyid(oid)::text end from unnest(p.polroles) oid order by 1) as roles,
    pg_get_expr(p.polqual, p.polrelid) as using, pg_get_expr(p.polwithcheck, p.polrelid) as check,
    d.description as comment
  from pg_policy p join pg_class c on c.oid = p.polrelid
    left join pg_description d on d.classoid = 'pg_policy'::regclass and d.objoid = p.oid
  where c.relnamespace = any ($1)
  order by p.polrelid, p.polname`;

export function readPolicies(read: Read, schemas: readonly number[]): Promise<PolicyRow[]> {
  return read("policies", POLICIES, [schemas]);
}

export function toPolicy({ table: _, command, ...policy }: PolicyRow): Policy {
  return { ...policy, command: COMMANDS[command] };
}
