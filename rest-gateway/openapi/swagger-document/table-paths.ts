import type { Column } from "../../../engine/catalog/columns.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { readComment } from "../comment.ts";
import { referTo, rowFilterKeys } from "./parameters.ts";

/** All verbs where one of them can be done to the table, whether or not the role may do it. */
export function tablePath(table: Table, columns: readonly Column[]): object {
  const { name, comment, insertable, updatable, deletable } = table;
  const { summary, description } = readComment(comment);
  const about = { tags: [name], summary, description };
  const parameters = (...keys: readonly string[]) => keys.map((key) => referTo("parameters", key));
  const filters = rowFilterKeys(table, columns);

  const get = {
    ...about,
    parameters: parameters(...filters, "select", "order", "range", "rangeUnit", "offset", "limit", "preferCount"),
    responses: {
      200: { description: "OK", schema: { items: referTo("definitions", name), type: "array" } },
      206: { description: "Partial Content" },
    },
  };
  if (!insertable && !updatable && !deletable) return { get };

  const post = {
    ...about,
    parameters: parameters(`body.${name}`, "select", "preferPost"),
    responses: { 201: { description: "Created" } },
  };
  const done = { 204: { description: "No Content" } };
  const remove = { ...about, parameters: parameters(...filters, "preferReturn"), responses: done };
  const patch = { ...about, parameters: parameters(...filters, `body.${name}`, "preferReturn"), responses: done };
  return { get, post, delete: remove, patch };
}
