import type { Read } from "./reader.ts";

/** An implicit cast between a domain and text or json: how the domain's values look to clients (PostgREST's domain representations). */
export type Representation = {
  /** Types and function as SQL spells them. */
  readonly source: string;
  readonly target: string;
  readonly function: string;
};

const REPRESENTATIONS = `
  select format_type(c.castsource, null) as source, format_type(c.casttarget, null) as target,
    c.castfunc::regproc::text as function
  from pg_cast c join pg_type s on s.oid = c.castsource join pg_type t on t.oid = c.casttarget
  where c.castcontext = 'i' and c.castmethod = 'f'
    and (s.typtype = 'd' and c.casttarget in ('json'::regtype, 'text'::regtype)
      or t.typtype = 'd' and c.castsource in ('json'::regtype, 'text'::regtype))
  order by c.oid`;

export function readRepresentations(read: Read): Promise<Representation[]> {
  return read("representations", REPRESENTATIONS);
}
