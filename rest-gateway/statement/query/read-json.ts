import type { JsonReader } from "../plan/records.ts";
import { fromCatalog, identifier, type Sql, sql } from "./sql.ts";

/** What the JSON says, as a value of the type. */
export function readJson(reader: JsonReader, sqlType: string, given: Sql): Sql {
  if (reader.kind === "function") return sql`${fromCatalog(reader.name)}(${given})`;
  const { schema, isList } = reader;
  const as = sql`::${fromCatalog(sqlType)}`;
  // What is neither an object nor a list is a text as the type's input function reads it, or null.
  const asText = sql`(${given} #>> '{}')${as}`;
  if (!isList)
    return sql`case json_typeof(${given}) when 'object' then ${hstoreOf(schema, given)}${as} else ${asText} end`;
  const item = identifier("item", "json");
  const itemText = sql`(${item} #>> '{}')::${identifier(schema, "hstore")}`;
  const value = sql`case json_typeof(${item}) when 'object' then ${hstoreOf(schema, item)} else ${itemText} end`;
  const items = sql`array(select ${value} from json_array_elements(${given}) as "item"("json"))`;
  return sql`case json_typeof(${given}) when 'array' then ${items}${as} else ${asText} end`;
}

function hstoreOf(schema: string, json: Sql): Sql {
  const pairs = sql`coalesce(array_agg("key"), '{}'), coalesce(array_agg("value"), '{}')`;
  return sql`(select ${identifier(schema, "hstore")}(${pairs}) from json_each_text(${json}))`;
}
