import { jsonResponse } from "#http";
import type { SharedQuery, SharedQueryList } from "#operations/admin-types";
import { readFields, TEXT } from "#rest-gateway/sign-in";
import { invalidRequest, resourceNotFound } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, NO_CONTENT } from "./admin-request.ts";
import { MAX_SHARED, onPlatformTable, readName, sharedItem } from "./shared-items.ts";

const MAX_TEXT = 50_000;
const QUERY_FIELDS = { name: TEXT, text: TEXT };

const LIST = "select name, text, saved_by, saved_at from content_service.shared_queries order by name";
const IS_FULL = `select pg_catalog.count(*) operator(pg_catalog.>=) ${MAX_SHARED} as full
  from content_service.shared_queries where name operator(pg_catalog.<>) $1`;
const SAVE = `insert into content_service.shared_queries (name, text, saved_by) values ($1, $2, $3)
  on conflict (name) do update
  set text = excluded.text, saved_by = excluded.saved_by, saved_at = pg_catalog.now()
  returning name, text, saved_by, saved_at`;
const DELETE = "delete from content_service.shared_queries where name operator(pg_catalog.=) $1";

type SharedQueryRow = Omit<SharedQuery, "saved_at"> & { readonly saved_at: Date };

/** The SQL that administrators share. */
export function queryRoutes({ asOwner }: Pick<AdminServices, "asOwner">): AdminRoutes {
  const onQueries = onPlatformTable(asOwner, "content_service.shared_queries", "This database has no shared queries.");
  return {
    "GET /queries": async () => {
      const { rows } = await onQueries((owner) => owner.query<SharedQueryRow>(LIST));
      const list: SharedQueryList = { queries: rows.map(sharedItem) };
      return jsonResponse(200, list);
    },
    "POST /queries": async ({ request, userId, logEvent }) => {
      const { name: given, text } = await readFields(request, QUERY_FIELDS);
      const name = readName(given);
      if (text.trim() === "" || text.length > MAX_TEXT)
        throw invalidRequest(`The text has 1 to ${MAX_TEXT} characters.`);
      await logEvent("studio.query_shared", { name });
      const saved = await onQueries(async (owner) => {
        const { rows } = await owner.query<{ full: boolean }>(IS_FULL, [name]);
        if (rows[0]!.full) throw invalidRequest(`There are ${MAX_SHARED} shared queries: delete one first.`);
        return owner.query<SharedQueryRow>(SAVE, [name, text, userId]);
      });
      return jsonResponse(200, sharedItem(saved.rows[0]!));
    },
    "DELETE /queries/{name}": async ({ request, logEvent }) => {
      const { name = "" } = request.parameters;
      await logEvent("studio.query_unshared", { name });
      const { rowCount } = await onQueries((owner) => owner.query(DELETE, [name]));
      if (rowCount === 0) throw resourceNotFound("There is no such query.");
      return NO_CONTENT;
    },
  };
}
