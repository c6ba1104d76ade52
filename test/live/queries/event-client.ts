import { parseLsn } from "../../../postgres/database/lsn.ts";
import { until } from "../../until.ts";
import { applyJsonPatch } from "./apply-json-patch.ts";

export type ServerEvent = { readonly id: string; readonly event: string; readonly data: unknown };

/** A client of `text/event-stream` that keeps the result as the events say. */
export class EventClient {
  readonly events: ServerEvent[] = [];
  readonly status: number;
  comments = 0;
  result: unknown;
  /** All results, as JSON. */
  readonly results: string[] = [];
  isOver = false;
  readonly #abort: AbortController;

  private constructor(response: Response, abort: AbortController) {
    this.status = response.status;
    this.#abort = abort;
    void this.#read(response)
      .catch(() => {})
      .finally(() => {
        this.isOver = true;
      });
  }

  static async open(url: string, headers: Readonly<Record<string, string>> = {}): Promise<EventClient> {
    const abort = new AbortController();
    const response = await fetch(url, { headers: { accept: "text/event-stream", ...headers }, signal: abort.signal });
    if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`);
    return new EventClient(response, abort);
  }

  get lastId(): string {
    return this.events.at(-1)!.id;
  }

  close(): void {
    this.#abort.abort();
  }

  /** Resolves when the result is this one. */
  async untilResult(expected: unknown): Promise<void> {
    await this.untilResultIs((result) => JSON.stringify(result) === JSON.stringify(expected));
  }

  async untilResultIs(condition: (result: unknown) => boolean): Promise<void> {
    await until(() => {
      if (this.isOver && !condition(this.result)) throw new Error(`over with ${JSON.stringify(this.result)}`);
      return condition(this.result);
    });
  }

  async #read(response: Response): Promise<void> {
    let text = "";
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        this.#receive(text.slice(0, end));
        text = text.slice(end + 2);
      }
    }
  }

  #receive(block: string): void {
    if (block.startsWith(":")) {
      this.comments++;
      return;
    }
    const fields = new Map(
      block.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)] as const),
    );
    const [id = "", event = ""] = [fields.get("id"), fields.get("event")];
    const data: unknown = JSON.parse(fields.get("data")!);
    if (event !== "end" && parseLsn(id) === null) throw new Error(`no LSN: ${id}`);
    this.events.push({ id, event, data });
    if (event === "snapshot") this.result = data;
    if (event === "change") this.result = applyJsonPatch(this.result, data as never);
    // A GraphQL response, whose subscription has the field `live` alone.
    if (event === "next") this.result = (data as { data?: { live: unknown } | null }).data?.live ?? data;
    if (event !== "end") this.results.push(JSON.stringify(this.result));
  }
}
