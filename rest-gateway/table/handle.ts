import type { Caller, Callers } from "../../engine/caller/caller.ts";
import { makeContexts } from "../../engine/caller/context.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Database } from "../../engine/database/database.ts";
import type { Statement } from "../../engine/database/statement.ts";
import type { GatewayRequest, GatewayResponse, Handler } from "../http.ts";
import { openApiAnswer } from "../openapi/answer.ts";
import { DocumentCache } from "../openapi/document-cache.ts";
import type { Manner } from "../statement/intent.ts";
import type { Plan } from "../statement/plan/plan.ts";
import { makePreparer } from "../statement/prepare.ts";
import { runPrepared } from "../statement/run.ts";
import { isolationOf, makeTableContexts } from "./context.ts";
import { identifyTableCaller } from "./credentials.ts";
import { totalWithEstimate } from "./estimate.ts";
import { formatOf } from "./format.ts";
import { type Deployment, hasBody, parseRequest, type TableRequest } from "./parse/request.ts";
import { toTableError } from "./refusal.ts";
import { methodsOf } from "./send/allow.ts";
import { sendAnswer } from "./send/send.ts";

export const PREFIX = "/rest/v1";

type Services = {
  readonly config: Config;
  readonly callers: Callers;
  readonly database: Database;
  readonly catalog: () => Catalog;
};

const NO_BODY = Buffer.alloc(0);

/** `/rest/v1`: each stage may refuse in its own way, and only the one called run asks Postgres. */
export function makeTableInterface({ config, callers, database, catalog: current }: Services): Handler {
  const prepare = makePreparer({
    aggregates: config.aggregates,
    maxRows: config.maxRows,
    safeWrites: config.safeWrites,
    legacyTargetNames: false,
    explain: config.planEnabled,
  });
  const contextOf = makeTableContexts(makeContexts(config), config);
  const documents = new DocumentCache();
  const before = preRequest(config);

  const answer = async (request: GatewayRequest, caller: Caller): Promise<GatewayResponse> => {
    const catalog = current();
    request.stages.enter("parse");
    const body = hasBody(request.method) ? await request.readBody() : NO_BODY;
    const path = request.path.slice(PREFIX.length);
    const asked = parseRequest({ ...request, path, body }, deploymentOf(config, catalog));
    if (asked.action.kind === "options") return allow(asked, catalog, caller.role);
    if (asked.action.kind === "describe") return describe(request, asked, caller, catalog);

    request.stages.enter("plan");
    const { intent } = asked.action;
    const prepared = prepare(intent, mannerOf(asked), catalog, caller.role);
    const context = contextOf({ request, path, caller, catalog, asked, plan: prepared.plan });

    request.stages.enter("run");
    const told = await runPrepared(prepared, context, database, {
      rollback: isUndone(config, asked),
      isolation: isolationOf({ caller, catalog, plan: prepared.plan }),
      before,
      signal: request.signal,
    });
    const total = await totalWithEstimate(prepared.plan, intent, told, { context, database, maxRows: config.maxRows });

    request.stages.enter("send");
    return sendAnswer(asked, prepared.plan, { ...told, total, body: toBytes(told.body, prepared.plan) });
  };

  const describe = async (request: GatewayRequest, asked: TableRequest, caller: Caller, catalog: Catalog) => {
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
    const profile = asked.profile.negotiated ? { "Content-Profile": asked.profile.schema } : {};
    const headers = { "Content-Type": contentType, ...profile, Vary: "Accept, Authorization, apikey" };
    return { status: 200, headers, body: text };
  };

  return async (request) => {
    request.stages.enter("caller");
    const caller = await identifyTableCaller(request, callers, config.requireApiKey);
    try {
      return await answer(request, caller);
    } catch (thrown) {
      throw toTableError(thrown, { anonymous: caller.role === config.anonRole });
    }
  };
}

/** Binary bodies come as hexadecimal digits. */
function toBytes(body: string | Buffer | null, { body: made }: Plan): string | Buffer | null {
  const isBinary = (made.kind === "aggregate" || made.kind === "value") && made.isBinary;
  return isBinary && body !== null ? Buffer.from(String(body), "hex") : body;
}

function deploymentOf({ schemas, rootSpec, openapiMode, txEnd }: Config, { timeZones }: Catalog): Deployment {
  return {
    schemas,
    // The schema is that of the profile.
    rootFunction: rootSpec?.split(".").at(-1) ?? null,
    describesItself: openapiMode !== "disabled",
    txOverride: txEnd.endsWith("allow-override"),
    timeZones,
  };
}

function mannerOf({ accept, method, preferences }: TableRequest): Manner {
  return {
    formats: accept.map(formatOf),
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
  const quoted = name.split(".").map((part) => `"${part.replaceAll('"', '""')}"`);
  return { text: `select ${quoted.join(".")}()`, values: [] };
}
