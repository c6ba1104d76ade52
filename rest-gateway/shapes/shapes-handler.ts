import { type Caller, hasExpired, quotaKey } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { CatalogRefresh } from "#catalog/loading";
import type { Config } from "#config";
import {
  dispatchMethod,
  EVENT_STREAM_HEADERS,
  type EventSource,
  type FindBodyLimit,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  makeBodyLimits,
  type ResponseBody,
  sendEvents,
  toHttpError,
} from "#http";
import {
  defineShape,
  defineSubset,
  type LiveShape,
  type LiveSource,
  readRowsOfRun,
  type ShapeDefinition,
  type ShapePosition,
  type ShapeRegistry,
  type ShapeRow,
  type ShapeSubset,
} from "#live";
import type { Database } from "#postgres/database";
import type { ResultRow, Statement, StatementContext } from "#postgres/statement";
import type { CallerAuthentication } from "../request/dialect.ts";
import { isStillValid } from "../request/live-request.ts";
import { makeStatementContexts } from "../request/run.ts";
import { MessageWriter, snapshotEnd, upToDate } from "./shape-messages.ts";
import { parseShapeRequest, type ShapeRequest } from "./shape-request.ts";
import { messagesResponse, refetchResponse, type ShapeCall, shapeHeaders, subsetResponse } from "./shape-response.ts";

export const SHAPES_PATH = "/v1/shape";

const LONG_POLL_MS = 20_000;
const NOTHING: Statement = { text: "select null", values: [] };
const MAX_BODY_BYTES = 64 * 1024;

type ShapeServices = CallerAuthentication & {
  readonly config: Config;
  readonly catalog: () => Catalog;
  readonly refreshCatalog: CatalogRefresh;
  readonly database: Database;
  readonly shapes: ShapeRegistry;
  /** Runs first in each transaction; it may refuse the request. */
  readonly preRequest: Statement | undefined;
};

/** Handles `/v1/shape`, in the protocol of Electric's clients: the rows of a table that the caller reads, and then each change of them. */
export function shapesHandler(services: ShapeServices): GatewayHandler {
  const handler = new ShapesHandler(services);
  const methods = new Map<string, GatewayHandler>([
    ["GET", (request) => handler.handle(request)],
    ["POST", (request) => handler.handle(request)],
  ]);
  return (request) => dispatchMethod(methods, request);
}

class ShapesHandler {
  readonly #services: ShapeServices;
  readonly #contextOf: ReturnType<typeof makeStatementContexts>;
  readonly #bodyLimitOf: FindBodyLimit;

  constructor(services: ShapeServices) {
    this.#services = services;
    const options = { interfaceName: "table", pathPrefix: "", hoistedSettings: [] } as const;
    this.#contextOf = makeStatementContexts(services.config, options);
    this.#bodyLimitOf = makeBodyLimits(services.config, MAX_BODY_BYTES);
  }

  async handle(received: GatewayRequest): Promise<GatewayResponse<ResponseBody>> {
    const { authenticate } = this.#services;
    const caller = await authenticate(received);
    received.admit(caller);
    const body = received.method === "POST" ? await received.readBody(this.#bodyLimitOf(caller)) : null;
    const parsed = parseShapeRequest(received.rawQuery, body === null ? null : String(body));
    const definition = await this.#define(parsed, caller);
    const source = this.#sourceOf(received, caller, definition);
    if (parsed.mode !== "once") received.whenSent(this.#services.shapes.beginWaiting(source.quotaKey));
    // The pre-request function may refuse each request, including those that need no run of the query.
    if (this.#services.preRequest) await this.#run(this.#contextFor(received, caller, definition), NOTHING);
    return this.#respond({ received, parsed, definition, source });
  }

  /** Electric's clients end at such an error, so it is given only if the table was not created or changed a moment ago. */
  async #define(parsed: ShapeRequest, { role }: Caller): Promise<ShapeDefinition> {
    const { catalog, refreshCatalog, config } = this.#services;
    const known = catalog();
    try {
      return defineShape(parsed, known, role, config.schemas);
    } catch (error) {
      if (!(await refreshCatalog(known))) throw error;
      return defineShape(parsed, catalog(), role, config.schemas);
    }
  }

  #contextFor(received: GatewayRequest, caller: Caller, { table }: ShapeDefinition): StatementContext {
    const catalog = this.#services.catalog();
    const of = { request: received, caller, catalog, schema: table.schema, timezone: null, plan: null };
    // The primary is used, because it has each commit first.
    const { readYourWrites: _, ...context } = this.#contextOf(of);
    return context;
  }

  async #run(context: StatementContext, statement: Statement): Promise<ResultRow> {
    const { database, config, preRequest: before } = this.#services;
    try {
      const { rows } = await database.run(context, statement, { readOnly: true, before });
      return rows[0]!;
    } catch (error) {
      throw toHttpError(error, { anonymous: context.role === config.anonRole });
    }
  }

  #sourceOf(received: GatewayRequest, caller: Caller, definition: ShapeDefinition): LiveSource {
    const { liveStatement: statement, table, columns, keyPlaces, conditionColumns, filters, identity } = definition;
    const context = this.#contextFor(received, caller, definition);
    const callerStatement = { statement, context };
    return {
      request: identity,
      caller,
      quotaKey: quotaKey(caller, () => received.connection().address),
      isPrivate: this.#services.preRequest !== undefined,
      outlivesRequest: true,
      statement: callerStatement,
      rows: { relation: table.oid, columns: columns.map(({ name }) => name), keyPlaces, conditionColumns },
      run: async () => {
        const rows = readRowsOfRun(await this.#run(context, statement));
        return { ...rows, statements: [callerStatement], filters, shown: [], missing: null };
      },
    };
  }

  async #respond(call: ShapeCall): Promise<GatewayResponse<ResponseBody>> {
    const { shapes } = this.#services;
    const { parsed, definition, source } = call;
    if (parsed.offset === null) {
      const shape = await shapes.open(definition, source);
      return this.#leaving(shape, () =>
        parsed.subset ? this.#sendSubset(call, parsed.subset, shape, null) : this.#sendRows(call, shape),
      );
    }
    const client = parsed.hasChangesOnly ? "of changes" : "of all rows";
    const found = await shapes.find(parsed.offset, { definition, source, client });
    if (!found) return this.#refetch(call);
    const { shape, offset } = found;
    if (!parsed.subset && parsed.mode === "events") return this.#sendEvents(call, shape, offset);
    return this.#leaving(shape, () =>
      parsed.subset ? this.#sendSubset(call, parsed.subset, shape, offset) : this.#sendChanges(call, shape, offset),
    );
  }

  async #leaving<Result>(shape: LiveShape, work: () => Promise<Result>): Promise<Result> {
    try {
      return await work();
    } finally {
      shape.leave();
    }
  }

  async #sendRows(call: ShapeCall, shape: LiveShape): Promise<GatewayResponse> {
    const { hasChangesOnly, isFullReplica, expiredHandle } = call.parsed;
    const { log, definition } = shape;
    const writer = new MessageWriter(definition, isFullReplica);
    const { position } = log;
    // A client that requests only changes has not read earlier commits.
    const messages = hasChangesOnly
      ? []
      : [...[...log.rows].map((row) => writer.row(row)), ...snapshotEnd(log.snapshot)];
    const xids = hasChangesOnly ? [] : log.recentXids;
    const handle = this.#services.shapes.handleOf(shape, expiredHandle);
    await shape.file?.saved();
    return messagesResponse(call, handle, { position, messages, xids });
  }

  async #sendChanges(call: ShapeCall, shape: LiveShape, offset: ShapePosition): Promise<GatewayResponse> {
    const { parsed, received, source } = call;
    if (parsed.mode === "long poll") await shape.changed(offset, LONG_POLL_MS, received.signal);
    const { expiresAt } = source.caller;
    if (expiresAt !== null && hasExpired(expiresAt)) throw new HttpError(401, "AUTH_EXPIRED", "The token has expired.");
    if (parsed.mode === "long poll" && !(await isStillValid(received, source.caller, this.#services)))
      throw new HttpError(401, "AUTH_EXPIRED", "The token or key is no longer valid.");
    const changes = changesFor(call, shape, offset);
    const handle = parsed.handle!;
    if (!changes) return this.#refetch(call);
    const { position } = shape.log;
    const writer = new MessageWriter(shape.definition, parsed.isFullReplica);
    const messages = [...writer.changes(changes), ...snapshotEnd(shape.log.snapshotSince(offset))];
    const xids = shape.log.otherXidsSince(offset);
    await shape.file?.saved();
    return messagesResponse(call, handle, { position, messages, xids });
  }

  /** Sends a subset. A client that has changes gets all that follow them: those that the subset already contains lead to the same rows. */
  async #sendSubset(
    call: ShapeCall,
    subset: ShapeSubset,
    shape: LiveShape,
    from: ShapePosition | null,
  ): Promise<GatewayResponse> {
    const { parsed, received, definition, source } = call;
    const offset = from ?? shape.log.position;
    const { caller } = source;
    const of = { catalog: this.#services.catalog(), role: caller.role };
    const statement = defineSubset(definition, subset, of);
    const [text, all, snapshot] = await this.#run(this.#contextFor(received, caller, definition), statement);
    // While the rows were read, a request with another token may have taken the shape over.
    if (!shape.isOf(source)) return this.#refetch(call);
    await shape.reconcile(all!, received.signal);
    // A client that continues from a file needs each change since the subset: the rows alone could be older.
    await shape.file?.synced();
    const writer = new MessageWriter(definition, parsed.isFullReplica);
    const data = (JSON.parse(text!) as ShapeRow[]).map((row) => writer.row(row));
    const handle =
      parsed.offset === null ? this.#services.shapes.handleOf(shape, parsed.expiredHandle) : parsed.handle!;
    return subsetResponse(call, handle, { offset, data, snapshot: snapshot! });
  }

  #refetch({ parsed, definition, source }: ShapeCall): GatewayResponse {
    return refetchResponse(this.#services.shapes.nextHandle(definition, source, parsed.handle));
  }

  #sendEvents(call: ShapeCall, shape: LiveShape, offset: ShapePosition): GatewayResponse<ResponseBody> {
    const { received, parsed, source } = call;
    const { caller } = source;
    const headers = { ...EVENT_STREAM_HEADERS, ...shapeHeaders(call, parsed.handle!, offset) };
    const isValid = () => isStillValid(received, caller, this.#services);
    received.whenSent(() => shape.leave());
    return { status: 200, headers, body: sendEvents(toEventSource(call, shape, offset), { caller, isValid }) };
  }
}

/** Returns the changes; null if the client has to begin anew. */
function changesFor({ source }: ShapeCall, shape: LiveShape, offset: ShapePosition) {
  return shape.isClosed || !shape.isOf(source) ? null : shape.log.changesSince(offset);
}

/** Returns the stream. Each message is an event without a name. The client connects again after the end, and then learns the reason. */
function toEventSource(call: ShapeCall, shape: LiveShape, offset: ShapePosition): EventSource {
  const writer = new MessageWriter(shape.definition, call.parsed.isFullReplica);
  let sent: ShapePosition | null = null;
  let xidCount = 0;
  return {
    async next(milliseconds) {
      if (sent !== null) await shape.changed(sent, milliseconds, null);
      const changes = changesFor(call, shape, sent ?? offset);
      if (!changes || (sent !== null && !shape.isAttached)) return null;
      const { position } = shape.log;
      const xids = shape.log.otherXidsSince(sent ?? offset, xidCount);
      if (sent === position && xids.length === 0) return "idle";
      const known = snapshotEnd(shape.log.snapshotSince(sent ?? offset));
      const messages = [...writer.changes(changes), ...known, upToDate(position, xids)];
      sent = position;
      xidCount = shape.log.otherXidCount;
      await shape.file?.saved();
      return messages.map((message) => `data: ${JSON.stringify(message)}\n\n`).join("");
    },
    expired: ": the credentials are not valid any more\n\n",
    close: () => {},
  };
}
