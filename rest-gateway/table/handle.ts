import { makeBodyLimits } from "../../engine/caller/body-limit.ts";
import type { Caller, Callers } from "../../engine/caller/caller.ts";
import { makeContexts } from "../../engine/caller/context.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Isolation } from "../../engine/database/exchange.ts";
import type { Context, Statement } from "../../engine/database/statement.ts";
import type { ApiError } from "../../engine/errors.ts";
import { type Counts, makeCounts } from "../../engine/metrics/counts.ts";
import { quotedName } from "../../engine/quoted-name.ts";
import { runStepwise } from "../../engine/stepwise.ts";
import { type Body, type GatewayRequest, type GatewayResponse, type Handler, isFlow } from "../http.ts";
import { makeIdempotentRunner } from "../idempotency/idempotent-runner.ts";
import { readIdempotencyKey } from "../idempotency/read-idempotency-key.ts";
import type { Manner } from "../statement/intent.ts";
import type { Plan } from "../statement/plan/plan.ts";
import type { Prepared } from "../statement/prepare.ts";
import { runPrepared, runWithin } from "../statement/run.ts";
import { prefersAsync, type QueueTask, type TaskHandler } from "../tasks/prepared-task.ts";
import { queryWithoutApiKey } from "./api-key.ts";
import { tableChange, transactionFor } from "./change.ts";
import { columnHint } from "./column-hint.ts";
import { isolationOf, makeTableContexts } from "./context.ts";
import { identifyTableCaller } from "./credentials.ts";
import { deploymentOf, makeTablePreparer } from "./deployment.ts";
import { makeDescribe } from "./describe.ts";
import { totalWithEstimate } from "./estimate.ts";
import { Forms, type Understood } from "./forms.ts";
import { type Content, NO_CONTENT, readContent } from "./parse/content.ts";
import { formOf } from "./parse/form.ts";
import { parseContentType } from "./parse/media-type.ts";
import { type Deployment, hasBody, parseRequest, parseTarget, type TableRequest } from "./parse/request.ts";
import { PREFIX } from "./prefix.ts";
import { toTableError } from "./refusal.ts";
import { methodsOf } from "./send/allow.ts";
import { sendAnswer } from "./send/send.ts";

type Services = {
  readonly config: Config;
  readonly callers: Callers;
  readonly database: Database;
  readonly catalog: () => Catalog;
  /** Null: nothing can be left for later here, so calls are answered at once whatever the client would prefer. */
  readonly defer?: QueueTask | null;
  readonly counts?: Counts;
};

/** What was asked for, read and planned. */
type Turn = Understood & {
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  readonly context: Context;
  readonly isolation: Isolation | null;
};

export type TableInterface = TaskHandler & { readonly handle: Handler };

/** From here on a body's values are put together in steps. */
const LARGE_BYTES = 64 * 1024;

/** `/rest/v1`: each stage may refuse in its own way, and only the one called run asks Postgres. */
export function makeTableInterface({
  config,
  callers,
  database,
  catalog: current,
  defer,
  counts = makeCounts(),
}: Services): TableInterface {
  const { prepare, prepareInSteps } = makeTablePreparer(config, counts.plans);
  const contextOf = makeTableContexts(makeContexts(config), config);
  const deployment = deploymentOf(config);
  const deploymentWith = ({ timeZones }: Catalog): Deployment => ({ ...deployment, timeZones });
  const forms = new Forms(counts.forms);
  const describe = makeDescribe(config);
  const before = preRequestOf(config);
  const bodyLimitOf = makeBodyLimits(config);
  const { run: once, runInTransaction: onceWithin } = makeIdempotentRunner(config, counts);

  const answer = (
    request: GatewayRequest,
    caller: Caller,
    content: Content,
  ): GatewayResponse<Body> | Promise<GatewayResponse<Body>> => {
    const catalog = current();
    const { method, rawQuery, headers } = request;
    const raw = { method, path: pathBelow(request), rawQuery, headers, content };
    const form = formOf(raw);
    const known = form && forms.recall(form, rawQuery, caller.role, catalog);
    const asked = known?.asked ?? parseRequest(raw, deploymentWith(catalog));
    if (asked.action.kind === "options") {
      request.stages.enter("response");
      return allow(asked, catalog, caller.role);
    }
    if (asked.action.kind === "describe") {
      return describe({ request, asked, tables: asked.action.tables, caller, catalog });
    }

    request.stages.enter("plan");
    const { intent } = asked.action;
    const { body } = content;
    if (body.length > LARGE_BYTES) {
      const steps = prepareInSteps(intent, mannerOf(asked), catalog, caller.role);
      const perform = (prepared: Prepared) => run(request, caller, body, catalog, { asked, intent, prepared });
      const prepared = runStepwise(steps, request.signal);
      return prepared instanceof Promise ? prepared.then(perform) : perform(prepared);
    }
    const understood = known ?? { asked, intent, prepared: prepare(intent, mannerOf(asked), catalog, caller.role) };
    if (form && !known) forms.learn(form, rawQuery, caller.role, understood);
    return run(request, caller, body, catalog, understood);
  };

  const run = (
    request: GatewayRequest,
    caller: Caller,
    body: Buffer,
    catalog: Catalog,
    { asked, intent, prepared }: Understood,
  ): GatewayResponse<Body> | Promise<GatewayResponse<Body>> => {
    const { plan } = prepared;
    const context = contextOf({ request, path: pathBelow(request), caller, catalog, asked, plan });

    request.stages.enter("transaction");
    const isolation = isolationOf({ caller, catalog, plan });
    const turn: Turn = { request, body, caller, asked, intent, prepared, context, isolation };
    if (isUndone(config, asked)) return answerNow(turn, true);
    // A key that cannot be read is refused whatever the client would prefer.
    const key = plan.readOnly ? null : readIdempotencyKey(request.headers);
    const isCall = plan.kind === "call" && request.method === "POST";
    if (defer && isCall && prefersAsync(request)) {
      const rawQuery = queryWithoutApiKey(request.headers, request.rawQuery);
      return defer({ request: { ...request, rawQuery }, body, caller, version: null });
    }
    return key === null ? answerNow(turn, false) : answerOnce(turn, key);
  };

  const answerOnce = ({ request, body, caller, asked, prepared, context, isolation }: Turn, key: string) => {
    const make = answerWithin(asked, prepared);
    return once(
      tableChange({ key, request, body, caller, make }),
      transactionFor({ context, database, isolation, before }),
    );
  };

  const answerNow = async (turn: Turn, rollback: boolean): Promise<GatewayResponse<Body>> => {
    const { request, asked, intent, prepared, context, isolation } = turn;
    const { plan } = prepared;
    const told = await runPrepared(prepared, context, database, {
      rollback,
      isolation,
      before,
      signal: request.signal,
    });
    try {
      const means = { context, database, maxRows: config.maxRows };
      const total = intent.count === null ? told.total : await totalWithEstimate(plan, intent, told, means);
      request.stages.enter("response");
      return sendAnswer(asked, plan, { ...told, total, body: toBytes(told.body, plan) });
    } catch (refusal) {
      // Nobody is going to read what is still coming.
      if (isFlow(told.body)) await told.body.return?.();
      throw refusal;
    }
  };

  /** As 405 has to (RFC 9110), unless somebody has told them already. */
  const tellMethods = (error: ApiError, request: GatewayRequest, role: string): ApiError => {
    if (error.headers.Allow !== undefined) return error;
    const catalog = current();
    const { resource, profile } = parseTarget({ ...request, path: pathBelow(request) }, deploymentWith(catalog));
    return error.withHeaders({ Allow: methodsOf(resource, { schema: profile.schema, catalog, role }) });
  };

  const undertake: TaskHandler["prepareTask"] = async (request, caller) => {
    const catalog = current();
    const content = await readContentOf(request, caller);
    const { body } = content;
    const path = pathBelow(request);
    const asked = parseRequest({ ...request, path, content }, deploymentWith(catalog));
    if (asked.action.kind !== "statement") throw new TypeError("Only statements are left for later");
    const { intent } = asked.action;
    const prepared = await runStepwise(prepareInSteps(intent, mannerOf(asked), catalog, caller.role));
    const { plan } = prepared;
    const context = contextOf({ request, path, caller, catalog, asked, plan });
    const isolation = isolationOf({ caller, catalog, plan });
    const timeoutMs = config.taskTimeout * 1000;
    const make = answerWithin(asked, prepared);
    const key = readIdempotencyKey(request.headers);
    const change = key === null ? null : tableChange({ key, request, body, caller, make });
    return {
      transact: transactionFor({ context, database, isolation, before, timeoutMs }),
      execute: change ? (ask) => onceWithin(change, ask) : make,
    };
  };

  const readContentOf = async (request: GatewayRequest, caller: Caller): Promise<Content> => {
    const body = await request.readBody(bodyLimitOf(caller));
    const format = parseContentType(request.headers["content-type"]);
    return runStepwise(readContent(body, format, request.holdMemory), request.signal);
  };

  const explain: TaskHandler["explainError"] = (thrown, { role }) =>
    toTableError(thrown, {
      anonymous: role === config.anonRole,
      columnHint: (hint) => columnHint(hint, current(), role),
    });

  const handle: Handler = async (request) => {
    request.stages.enter("jwt");
    const identified = identifyTableCaller(request, callers, config.requireApiKey);
    const caller = identified instanceof Promise ? await identified : identified;
    request.admit(caller);
    try {
      request.stages.enter("parse");
      const content = hasBody(request.method) ? await readContentOf(request, caller) : NO_CONTENT;
      return await answer(request, caller, content);
    } catch (thrown) {
      const error = explain(thrown, caller);
      throw error.status === 405 ? tellMethods(error, request, caller.role) : error;
    }
  };

  return { handle, prepareTask: undertake, explainError: explain };
}

function pathBelow({ path }: Pick<GatewayRequest, "path">): string {
  return path.slice(PREFIX.length);
}

/** In a transaction that is begun and ended by somebody else. */
function answerWithin(asked: TableRequest, prepared: Prepared): (ask: Ask) => Promise<GatewayResponse> {
  const { plan } = prepared;
  return async (ask) => {
    const told = await runWithin(ask, prepared);
    return sendAnswer(asked, plan, { ...told, body: toBytes(told.body, plan) });
  };
}

/** Binary bodies come as hexadecimal digits. */
function toBytes<B extends Body>(body: B | null, { body: made }: Plan): B | Buffer | null {
  const isBinary = (made.kind === "aggregate" || made.kind === "value") && made.isBinary;
  return isBinary && body !== null ? Buffer.from(String(body), "hex") : body;
}

function mannerOf({ accept, method, preferences }: TableRequest): Manner {
  return {
    formats: accept,
    body: method !== "HEAD",
    maxAffected: preferences.handling === "strict" ? preferences.maxAffected : null,
  };
}

function isUndone({ txEnd }: Config, { preferences }: TableRequest): boolean {
  return preferences.tx === null ? txEnd.startsWith("rollback") : preferences.tx === "rollback";
}

function allow({ action, profile }: TableRequest, catalog: Catalog, role: string): GatewayResponse {
  if (action.kind !== "options") throw new TypeError("Only OPTIONS asks for methods");
  return {
    status: 200,
    headers: { Allow: methodsOf(action.resource, { schema: profile.schema, catalog, role }) },
    body: null,
  };
}

/** The call of PGRST_DB_PRE_REQUEST, a name with or without its schema; ahead of each request's own statement. */
function preRequestOf({ preRequest: name }: Config): Statement | undefined {
  if (name === null) return undefined;
  return { text: `select ${quotedName(...name.split("."))}()`, values: [] };
}
