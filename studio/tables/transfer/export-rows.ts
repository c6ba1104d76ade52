import { quoteField } from "../../api/field-names.ts";
import { formatQuery, type QueryParameter, type TableRow, tablePath } from "../../api/rest-query.ts";
import type { SendRequest } from "../edit/row-changes.ts";
import { writeCsvRecord } from "./csv-writer.ts";
import { JsonElementReader } from "./json-elements.ts";

export type ExportFormat = "csv" | "json";

export type ExportRequest = {
  readonly schema: string;
  readonly table: string;
  readonly columns: readonly string[];
  readonly filters: readonly QueryParameter[];
  /** The value of the parameter `order`; empty for none. */
  readonly order: string;
  readonly format: ExportFormat;
  /** True if cells in CSV that begin like a formula are protected. */
  readonly forSpreadsheets: boolean;
};

/** Returns the text of the file in pieces as the rows arrive. One request reads all rows, so they are of one moment. */
export async function* exportRows(exported: ExportRequest, send: SendRequest): AsyncGenerator<string> {
  const { schema, table, columns, filters, order, format } = exported;
  // JSON has the original values, with all digits of numbers; CSV has Postgres's texts.
  const select = columns.map((name) => (format === "csv" ? `${quoteField(name)}::text` : quoteField(name))).join(",");
  const parameters: QueryParameter[] = [["select", select], ...filters, ...(order ? [["order", order] as const] : [])];
  const headers = { "Accept-Profile": schema, Accept: "application/json" };
  const response = await send(`${tablePath(table)}?${formatQuery(parameters)}`, { method: "GET", headers });
  if (format === "json") yield* textOf(response.body!);
  else yield* writeCsv(textOf(response.body!), exported);
}

async function* writeCsv(pieces: AsyncIterable<string>, style: ExportRequest): AsyncGenerator<string> {
  const { columns } = style;
  yield writeCsvRecord(columns, style);
  const reader = new JsonElementReader();
  for await (const piece of pieces) {
    const rows = reader.read(piece).map(({ text }) => JSON.parse(text) as TableRow);
    const lines = rows.map((row) =>
      writeCsvRecord(
        columns.map((name) => row[name] ?? null),
        style,
      ),
    );
    if (lines.length > 0) yield lines.join("");
  }
  reader.end();
}

/** Returns the text of a response or a file in pieces. */
export async function* textOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const reader = stream.getReader();
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      yield decoder.decode(part.value, { stream: true });
    }
    yield decoder.decode();
  } finally {
    await reader.cancel().catch(() => {});
  }
}
