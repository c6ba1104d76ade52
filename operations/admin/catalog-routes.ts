import { createHash } from "node:crypto";
import type { DatabaseDescription } from "#catalog/database-description";
import { compressResponse, contentResponse, notFound } from "#http";
import { forEachInSlices } from "#runtime/concurrency";
import { describeDatabase } from "../inspect/describe-database.ts";
import type { AdminRoutes, AdminServices } from "./admin-request.ts";

/** `GET /catalog`: all objects of the database, or of one schema. */
export function catalogRoutes({ asOwner, catalog }: Pick<AdminServices, "asOwner" | "catalog">): AdminRoutes {
  return {
    "GET /catalog": async ({ request }) => {
      const schema = request.query.get("schema");
      const description = await asOwner((owner) => describeDatabase(owner, { served: catalog(), schema }));
      if (!description) throw notFound();
      const { body, tag } = await serializeDescription(description);
      const headers = { "Content-Type": "application/json; charset=utf-8", ETag: tag };
      return compressResponse(contentResponse({ body, headers }, request.headers["if-none-match"]), request.headers);
    },
  };
}

/** Sizes change with each write. The tag is a weak one, so it stays the same while the sizes are about the same. */
async function serializeDescription(description: DatabaseDescription): Promise<{ body: string; tag: string }> {
  const digest = createHash("sha256");
  const lists: string[] = [];
  for (const [name, list] of Object.entries(description)) {
    digest.update(`${name}\n`);
    const items: string[] = [];
    const all = Array.isArray(list) ? list : [list];
    await forEachInSlices(all as readonly object[], (item) => {
      const text = JSON.stringify(item);
      items.push(text);
      digest.update(text.replace(SIZES, (_size, field, value) => field + roughly(field, value)));
    });
    const joined = items.join(",\n");
    lists.push(`${JSON.stringify(name)}:${Array.isArray(list) ? `[${joined}]` : joined}`);
  }
  return { body: `{${lists.join(",\n")}}\n`, tag: `W/"${digest.digest("base64url")}"` };
}

/** Rounds a size to its first digit. For scans, which grow with each request, returns the number of digits. */
function roughly(field: string, value: string): string {
  if (field.includes("scans")) return value === "0" ? "0" : String(value.length);
  return Number(value).toPrecision(1);
}

/** Matches sizes as fields only: quotes within a text would be escaped. */
const SIZES = /("(?:estimated_rows|bytes|scans)":)(\d+)/g;
