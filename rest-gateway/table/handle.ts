import type { Caller, Callers } from "../../engine/caller/caller.ts";
import { makeContexts } from "../../engine/caller/context.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Statement } from "../../engine/database/statement.ts";
import type { ApiError } from "../../engine/errors.ts";
import { type Counts, makeCounts } from "../../engine/metrics/counts.ts";
import { quotedName } from "../../engine/quoted-name.ts";
import { type Body, type GatewayRequest, type GatewayResponse, type Handler, isFlow } from "../http.ts";
import { readIdempotencyKey } from "../idempotency/key.ts";
import { makeKeyedChanges } from "../idempotency/keyed-changes.ts";
import { openApiAnswer } from "../openapi/answer.ts";
import { DocumentCache } from "../openapi/document-cache.ts";
import type { Manner } from "../statement/intent.ts";
import type { Plan } from "../statement/plan/plan.ts";
import { runPrepared, runWithin } from "../statement/run.ts";
import { type Defer, type Undertake, wantsLater } from "../tasks/undertaking.ts";
import { inTransaction, tableChange } from "./change.ts";
import { isolationOf, makeTableContexts } from "./context.ts";
import { identifyTableCaller } from "./credentials.ts";
import { deploymentOf, makeTablePreparer } from "./deployment.ts";
import { totalWithEstimate } from "./estimate.ts";
import { Forms } from "./forms.ts";
import { formOf } from "./parse/form.ts";
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
  readonly defer?: Defer | null;
  readonly counts?: Counts;
};

export type TableInterface = Undertake & { readonly handle: Handler };

const NO_BODY = Buffer.alloc(0);

/** `/rest/v1`: each stage may refuse in its own way, and only the one called run asks Postgres. */
export function makeTableInterface({
  config,
  callers,
  database,
  catalog: current,
  defer,
  counts = makeCounts(),
}: Services): TableInterface {
  const prepare = makeTablePreparer(config, counts.plans);
  const contextOf = makeTableContexts(makeContexts(config), config);
  const deployment = deploymentOf(config);
  const deploymentWith = ({ timeZones }: Catalog): Deployment => ({ ...deployment, timeZones });
  const forms = new Forms(counts.forms);
  const documents = new DocumentCache();
  const before = preRequest(config);
  const once = makeKeyedChanges(config, counts);

  const answer = async (request: GatewayRequest, caller: Caller): Promise<GatewayResponse<Body>> => {
    const catalog = current();
    request.stages.enter("parse");
    const { method, rawQuery, headers } = request;
    const body = hasBody(method) ? await request.readBody() : NO_BODY;
    const path = request.path.slice(PREFIX.length);
    const raw = { method, path, rawQuery, headers, body };
    const form = formOf(raw);
    const known = form && forms.recall(form, rawQuery, caller.role, catalog);
    const asked = known?.asked ?? parseRequest(raw, deploymentWith(catalog));
    if (asked.action.kind === "options") {
      request.stages.enter("response");
      return allow(asked, catalog, caller.role);
    }
    if (asked.action.kind === "describe") return describe(request, asked, caller, catalog);

    request.stages.enter("plan");
    const { intent } = asked.action;
    const prepared = known?.prepared ?? prepare(intent, mannerOf(asked), catalog, caller.role);
    if (form && !known) forms.learn(form, rawQuery, caller.role, { asked, intent, prepared });
    const context = contextOf({ request, path, caller, catalog, asked, plan: prepared.plan });

    request.stages.enter("transaction");
    const rollback = isUndone(config, asked);
    const isolation = isolationOf({ caller, catalog, plan: prepared.plan });
    const key = rollback || prepared.plan.readOnly ? null : readIdempotencyKey(request.headers);
    const isCall = prepared.plan.kind === "call" && request.method === "POST" && !rollback;
    if (defer && isCall && wantsLater(request)) return defer({ request, body, caller, version: null });
    if (key !== null) {
      const make = async (ask: Ask) => {
        const told = await runWithin(ask, prepared);
        return sendAnswer(asked, prepared.plan, { ...told, body: toBytes(told.body, prepared.plan) });
      };
      return once(tableChange({ key, request, body, caller, context, database, isolation, before, make }));
    }
    const options = { rollback, isolation, before, signal: request.signal };
    const told = await runPrepared(prepared, context, database, options);
    try {
      const means = { context, database, maxRows: config.maxRows };
      const total = intent.count === null ? told.total : await totalWithEstimate(prepared.plan, intent, told, means);
      request.stages.enter("response");
      return sendAnswer(asked, prepared.plan, { ...told, total, body: toBytes(told.body, prepared.plan) });
    } catch (refusal) {
      // Nobody is going to read what is still coming.
      if (isFlow(told.body)) await told.body.return?.();
      throw refusal;
    }
  };

  const describe = async (request: GatewayRequest, asked: TableRequest, caller: Caller, catalog: Catalog) => {
    request.stages.enter("plan");
    const { contentType, text } = await openApiAnswer(
      {
        catalog,
        role: caller.role,
        schema: asked.profile.schema,
        mode: config.openapiMode === "ignore-privileges" ? "ignore-privileges" : "follow-privileges",
        serverUrl: config.openapiProxyUrl ?? PREFIX,
        securityActive: config.openapiSecurity,
        version: "1",
        accept: request.headers.accept,
      },
      documents,
    );
    request.stages.enter("response");
    const profile = asked.profile.negotiated ? { "Content-Profile": asked.profile.schema } : {};
    const headers = { "Content-Type": contentType, ...profile, Vary: "Accept, Authorization, apikey" };
    return { status: 200, headers, body: text };
  };

  /** As 405 has to (RFC 9110), unless somebody has told them already. */
  const tellMethods = (error: ApiError, request: GatewayRequest, role: string): ApiError => {
    if (Object.keys(error.headers).some((name) => name.toLowerCase() === "allow")) return error;
    const catalog = current();
    const path = request.path.slice(PREFIX.length);
    const { resource, profile } = parseTarget({ ...request, path }, deploymentWith(catalog));
    return error.withHeaders({ Allow: methodsOf(resource, { schema: profile.schema, catalog, role }) });
  };

  const undertake: Undertake["undertake"] = async (request, caller) => {
    const catalog = current();
    const body = await request.readBody();
    const path = request.path.slice(PREFIX.length);
    const asked = parseRequest({ ...request, path, body }, deploymentWith(catalog));
    if (asked.action.kind !== "statement") throw new TypeError("Only statements are left for later");
    const prepared = prepare(asked.action.intent, mannerOf(asked), catalog, caller.role);
    const { plan } = prepared;
    const context = contextOf({ request, path, caller, catalog, asked, plan });
    const isolation = isolationOf({ caller, catalog, plan });
    const timeoutMs = config.taskTimeout * 1000;
    return {
      transact: inTransaction({ context, database, isolation, before, timeoutMs }),
      make: async (ask) => {
        const told = await runWithin(ask, prepared);
        return sendAnswer(asked, plan, { ...told, body: toBytes(told.body, plan) });
      },
    };
  };

  const explain: Undertake["explain"] = (thrown, { role }) =>
    toTableError(thrown, { anonymous: role === config.anonRole });

  const handle: Handler = async (request) => {
    request.stages.enter("jwt");
    const identified = identifyTableCaller(request, callers, config.requireApiKey);
    const caller = identified instanceof Promise ? await identified : identified;
    request.admit(caller);
    try {
      return await answer(request, caller);
    } catch (thrown) {
      const error = explain(thrown, caller);
      throw error.status === 405 ? tellMethods(error, request, caller.role) : error;
    }
  };

  return { handle, undertake, explain };
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

/** A name from the settings, with or without its schema. */
function preRequest({ preRequest: name }: Config): Statement | undefined {
  if (name === null) return undefined;
  return { text: `select ${quotedName(...name.split("."))}()`, values: [] };
}
