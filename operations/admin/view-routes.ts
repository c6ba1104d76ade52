import { jsonResponse } from "#http";
import type { SharedView, SharedViewList } from "#operations/admin-types";
import { type BodyField, OPTIONAL_TEXT, readFields, TEXT } from "#rest-gateway/sign-in";
import { invalidRequest, permissionDenied, resourceNotFound } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, NO_CONTENT } from "./admin-request.ts";
import { MAX_SHARED, onPlatformTable, readName, sharedItem } from "./shared-items.ts";

const MAX_QUERY = 10_000;
const MAX_COLUMNS = 1_600;
const MAX_COLUMN_NAME = 63;

const isColumnNames = (value: unknown): value is readonly string[] =>
  Array.isArray(value) &&
  value.length <= MAX_COLUMNS &&
  value.every((name) => TEXT.accepts(name) && name.length <= MAX_COLUMN_NAME);
const OPTIONAL_COLUMNS: BodyField<readonly string[] | null> = {
  isRequired: false,
  accepts: isColumnNames,
  message: "Send a list of names of columns.",
};
const VIEW_FIELDS = { name: TEXT, query: OPTIONAL_TEXT, columns: OPTIONAL_COLUMNS };

const SHOWN = `name, query, columns, saved_by, saved_at`;
const LIST = `select ${SHOWN}, content_service.may_change_view(view.*, $3) as may_change
  from content_service.table_views as view
  where schema_name operator(pg_catalog.=) $1 and table_name operator(pg_catalog.=) $2 order by name`;
const CHECK = `select
    pg_catalog.to_regclass(pg_catalog.format('%I.%I', $1::pg_catalog.text, $2::pg_catalog.text)) is not null as has,
    (select pg_catalog.count(*) operator(pg_catalog.>=) ${MAX_SHARED} from content_service.table_views
     where (schema_name, table_name, name) operator(pg_catalog.<>) ($1, $2, $3::pg_catalog.text)) as full`;
const SAVE = `insert into content_service.table_views as view (schema_name, table_name, name, query, columns, saved_by)
  values ($1, $2, $3, $4, $5, $6)
  on conflict (schema_name, table_name, name) do update
  set query = excluded.query, columns = excluded.columns, saved_by = excluded.saved_by, saved_at = pg_catalog.now()
  where content_service.may_change_view(view.*, $6)
  returning ${SHOWN}, true as may_change`;
const DELETE = `with found as (
    select name from content_service.table_views
    where (schema_name, table_name, name) operator(pg_catalog.=) ($1, $2, $3)
  ), deleted as (
    delete from content_service.table_views as view
    where (schema_name, table_name, name) operator(pg_catalog.=) ($1, $2, $3) and content_service.may_change_view(view.*, $4)
    returning name
  )
  select exists (select from found) as is_found, exists (select from deleted) as is_deleted`;

type SharedViewRow = Omit<SharedView, "saved_at"> & { readonly saved_at: Date };

const othersView = () => permissionDenied("Another administrator has saved this view.", "Save yours by another name.");

/** The views of tables that administrators share. */
export function viewRoutes({ asOwner }: Pick<AdminServices, "asOwner">): AdminRoutes {
  const onViews = onPlatformTable(asOwner, "content_service.table_views", "This database has no shared views.");
  return {
    "GET /views/{schema}/{table}": async ({ request, userId }) => {
      const { schema, table } = request.parameters;
      const { rows } = await onViews((owner) => owner.query<SharedViewRow>(LIST, [schema, table, userId]));
      const list: SharedViewList = { views: rows.map(sharedItem) };
      return jsonResponse(200, list);
    },
    "POST /views/{schema}/{table}": async ({ request, userId, logEvent }) => {
      const { schema, table } = request.parameters;
      const { name: given, query, columns } = await readFields(request, VIEW_FIELDS);
      const name = readName(given);
      if ((query ?? "").length > MAX_QUERY) throw invalidRequest(`The query has at most ${MAX_QUERY} characters.`);
      await logEvent("studio.view_shared", { schema, table, name });
      const saved = await onViews(async (owner) => {
        const { rows } = await owner.query<{ has: boolean; full: boolean }>(CHECK, [schema, table, name]);
        if (!rows[0]!.has) throw resourceNotFound("There is no such table.");
        if (rows[0]!.full) throw invalidRequest(`There are ${MAX_SHARED} shared views: delete one first.`);
        return owner.query<SharedViewRow>(SAVE, [schema, table, name, query ?? "", columns, userId]);
      });
      if (!saved.rows[0]) throw othersView();
      return jsonResponse(200, sharedItem(saved.rows[0]));
    },
    "DELETE /views/{schema}/{table}/{name}": async ({ request, userId, logEvent }) => {
      const { schema, table, name } = request.parameters;
      await logEvent("studio.view_unshared", { schema, table, name });
      const { rows } = await onViews((owner) =>
        owner.query<{ is_found: boolean; is_deleted: boolean }>(DELETE, [schema, table, name, userId]),
      );
      if (!rows[0]!.is_found) throw resourceNotFound("There is no such view.");
      if (!rows[0]!.is_deleted) throw othersView();
      return NO_CONTENT;
    },
  };
}
