import type pg from "pg";
import { DependencyCache, type LiveResult, type QueryDependencies } from "#live";
import { REALTIME_PUBLICATION } from "#live/stream";
import type { AsOwner } from "#postgres/database";
import { ApiError } from "#runtime";

type ReadStatement = LiveResult["statements"][number];

/** Says whether the read can be live, which tables' changes run it again, and who shares its result; or why it cannot be live. */
export async function explainLive(owner: pg.ClientBase, read: ReadStatement): Promise<string> {
  const asOwner: AsOwner = (work) => work(owner);
  try {
    const dependencies = await new DependencyCache(asOwner, REALTIME_PUBLICATION).of([read]);
    return await describeLive(owner, dependencies, read.context.role);
  } catch (error) {
    // The owner of a managed database may lack the right to create temporary objects: the rest of the explanation holds.
    if (!(error instanceof ApiError && error.cause instanceof Error)) throw error;
    return `Whether it can be live is unknown: ${error.cause.message}.`;
  }
}

async function describeLive(owner: pg.ClientBase, dependencies: QueryDependencies, role: string): Promise<string> {
  const { obstacles, relations } = dependencies;
  if (obstacles.length > 0) return `Not live: ${obstacles.join("; ")}.`;
  const names = await readTableNames(owner, relations);
  const after = names.length > 0 ? `runs again after changes of ${names.join(", ")}` : "reads no tables";
  return `Live: ${after}; ${describeSharing(dependencies, role)}.`;
}

async function readTableNames(owner: pg.ClientBase, relations: QueryDependencies["relations"]): Promise<string[]> {
  const { rows } = await owner.query<{ name: string }>(
    `select distinct pg_catalog.format('%I.%I', n.nspname, c.relname) as name
     from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid operator(pg_catalog.=) c.relnamespace
     where c.oid operator(pg_catalog.=) any ($1::pg_catalog.oid[]) order by name`,
    [relations.map(({ oid }) => oid)],
  );
  return rows.map(({ name }) => name);
}

function describeSharing({ claims, readsRequest }: QueryDependencies, role: string): string {
  if (readsRequest) return "each client has a result of its own, because it depends on the headers of a request";
  if (claims === "all") return `callers as ${role} share the result if all their claims are equal`;
  if (claims.size === 0) return `all callers as ${role} share the result`;
  return `callers as ${role} share the result if these claims are equal: ${[...claims].sort().join(", ")}`;
}
