import { makeBodyLimits } from "../../engine/caller/body-limit.ts";
import type { Caller, Callers } from "../../engine/caller/caller.ts";
import type { CrossSite } from "../../engine/caller/cross-site.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { CatchUp } from "../../engine/catalog/catch-up.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Database } from "../../engine/database/database.ts";
import { isOutdated } from "../../engine/database/outdated.ts";
import { ApiError } from "../../engine/errors.ts";
import { type Counts, makeCounts } from "../../engine/metrics/counts.ts";
import { methodNotAllowed, notFound } from "../../engine/wrong-address.ts";
import { identifyCaller, queryWithoutApiKey } from "../auth/credentials.ts";
import type { GatewayRequest, GatewayResponse, Handler } from "../http.ts";
import { makeIdempotentRunner } from "../idempotency/idempotent-runner.ts";
import { readIdempotencyKey } from "../idempotency/read-idempotency-key.ts";
import { publicPath } from "../public-address.ts";
import { type RunOptions, runPrepared, runWithin } from "../statement/run.ts";
import { prefersAsync, type QueueTask, type TaskHandler } from "../tasks/prepared-task.ts";
import {
  type Asked,
  type AskRows,
  type BodyLimits,
  type Exchange,
  type Rows,
  readBody,
  withBody,
  withLastingBody,
} from "./asked.ts";
import { collectionsOf } from "./collections.ts";
import { makeResourceContexts } from "./context.ts";
import { explain } from "./explain.ts";
import { type Address, parseAddress } from "./parse/address.ts";
import { addressInProfile } from "./parse/profile.ts";
import { findTarget } from "./parse/target.ts";
import { act, checkAct } from "./perform/act.ts";
import { change, remove } from "./perform/change.ts";
import { create } from "./perform/create.ts";
import { resourceChange } from "./perform/once.ts";
import { readList, readRow } from "./perform/read.ts";
import { makeResourcePreparer } from "./prepare.ts";
import { notPermitted } from "./refusals.ts";
import { Refused } from "./refused.ts";
import { cacheHeaders } from "./send/headers.ts";
import type { Version, Versions } from "./versions/served.ts";
import { settleVersion } from "./versions/settle.ts";

type Services = {
  readonly config: Config;
  readonly callers: Callers;
  readonly crossSite: CrossSite;
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly catchUp: CatchUp;
  readonly versions: Versions;
  /** Null: nothing can be left for later here. */
  readonly defer?: QueueTask | null;
  readonly counts?: Counts;
};

export type ResourceInterface = TaskHandler & {
  readonly handle: Handler;
  /** Whether there is a collection of that name, whoever asks. */
  has(name: string): boolean;
};

/** What is known of a request before its address is looked up. */
type AuthenticatedRequest = Pick<Asked, "request" | "address" | "caller"> & { readonly served: readonly Version[] };

/** With so many a request is tried while the schema changes. */
const MOST_CATALOGUES = 4;

/** Shared by all requests that have none: nobody changes them. */
const NO_PARAMETERS = new URLSearchParams();

/** `/users` and `/api/v<N>/<collection>`: each stage may refuse in its own way, and only `perform` asks Postgres. */
export function makeResourceInterface(services: Services): ResourceInterface {
  const { config, callers, crossSite, database, catalog: current, catchUp, versions, defer } = services;
  const { counts = makeCounts() } = services;
  const prepareFor = makeResourcePreparer(config, counts.plans);
  const refused = new Refused(config);
  const contextOf = makeResourceContexts(config);
  const bodyLimits: BodyLimits = { rows: makeBodyLimits(config), row: makeBodyLimits(config, config.maxRowBytes) };
  const { run: once, runInTransaction: onceWithin } = makeIdempotentRunner(config, counts);

  /** Null: nothing of this interface is at that address. */
  const understand = ({ request, address, caller, served }: AuthenticatedRequest): Asked | null => {
    const catalog = current();
    const parameters = request.rawQuery === "" ? NO_PARAMETERS : new URLSearchParams(request.rawQuery);
    const terms = { versions: served, publicUrl: config.publicUrl };
    const { agreed, version, notice } = settleVersion(request, address, parameters, terms);
    const collections = collectionsOf(catalog, { role: caller.role, version: version.number });
    const inProfile = addressInProfile(address, request, catalog);
    const target = inProfile && findTarget(inProfile, collections);
    if (!target) return null;
    const understood = {
      request,
      caller,
      catalog,
      collections,
      address: inProfile,
      target,
      parameters,
      agreed,
      notice,
    };
    return { ...understood, settings: config, bodyLimits };
  };

  const contextFor = ({ request, caller, catalog, target }: Asked) =>
    contextOf({ request, caller, catalog, schema: target.collection.table.schema });
  const within =
    (asked: Asked, ask: Ask): AskRows =>
    (intent, model) =>
      runWithin(ask, prepareFor(asked, intent, model)).then(toRows, refused.noting(intent));

  const exchangeFor = (asked: Asked): Exchange => {
    const context = contextFor(asked);
    const options: RunOptions = { rollback: false, isolation: null, before: undefined, signal: asked.request.signal };
    return {
      ask: (intent, model) =>
        runPrepared(prepareFor(asked, intent, model), context, database, options).then(toRows, refused.noting(intent)),
      together: (work) => database.transaction(context, (query) => work(within(asked, query))),
    };
  };

  const handle: Handler = async (request) => {
    const address = parseAddress(request.path);
    const isOurs = address.base !== "" || isAtRoot(address);
    if (!isOurs) throw notFound();
    request.stages.enter("caller");
    request.tell(cacheHeaders(null));
    let caller: Caller;
    try {
      const identified = identifyCaller(request, { callers, crossSite });
      caller = identified instanceof Promise ? await identified : identified;
    } catch (refusal) {
      await tellOfVersion(request, address);
      throw refusal;
    }
    request.tell(cacheHeaders(caller));
    request.stages.enter("parse");
    const served = versions();
    const met = {
      request: changesNothing(request.method) ? request : withLastingBody(request),
      address,
      caller,
      served: served instanceof Promise ? await served : served,
    };
    for (let attempts = 1; ; attempts++) {
      const asked = understand(met);
      if (!asked) throw notFound();
      if (address.canonical !== request.path) return moved(asked);
      try {
        request.stages.enter("run");
        return await answer(asked);
      } catch (thrown) {
        // A statement that names what is there no more has done nothing.
        const isAgain = attempts < MOST_CATALOGUES && isOutdated(thrown) && (await catchUp(asked.catalog));
        if (!isAgain) throw refused.explain(thrown, asked);
      }
    }
  };

  /** For who is refused before the version is known. Where it cannot be settled, the refusal comes first. */
  const tellOfVersion = async (request: GatewayRequest, address: Address): Promise<void> => {
    const terms = { versions: await versions(), publicUrl: config.publicUrl };
    try {
      settleVersion(request, address, new URLSearchParams(request.rawQuery), terms);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  };

  /** Whatever role asks, and in whatever version: which addresses there are is the same for all. */
  const addresses = () => collectionsOf(current(), { role: config.anonRole, version: 1 });
  const isAtRoot = ({ segments: [name = ""] }: Address): boolean => addresses().findAtRoot(name) !== undefined;

  const answer = (asked: Asked): GatewayResponse | Promise<GatewayResponse> => {
    const { request } = asked;
    const allow = methodsOf(asked);
    if (!allow.includes(request.method)) throw methodNotAllowed(request.method, allow.join(", "));
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: allow.join(", ") }, body: null };
    return changesNothing(request.method) ? perform(asked, exchangeFor(asked)) : answerChange(asked);
  };

  const answerChange = async (asked: Asked): Promise<GatewayResponse> => {
    const { request, target, caller } = asked;
    if (defer && target.action && prefersAsync(request)) {
      const body = await readBody(asked);
      await checkAct(withBody(asked, body));
      const rawQuery = queryWithoutApiKey(request.rawQuery);
      return defer({ request: { ...request, rawQuery }, body, caller, version: asked.collections.version });
    }
    const key = readIdempotencyKey(request.headers);
    const make = (again: Asked, ask: Ask) => {
      const askWithin = within(again, ask);
      return perform(again, { ask: askWithin, together: (work) => work(askWithin) });
    };
    if (key === null) {
      if (!asked.agreed.links && !asked.parameters.has("links")) return perform(asked, exchangeFor(asked));
      // Links are read after the change, which must not be committed if it is tried again because of them.
      const whole = withBody(asked, await readBody(asked));
      return database.transaction(contextFor(asked), (ask) => make(whole, ask));
    }
    return once(await resourceChange(asked, { key, make }), (work) => database.transaction(contextFor(asked), work));
  };

  const undertake: TaskHandler["prepareTask"] = async (request, caller) => {
    const asked = understand({ request, address: parseAddress(request.path), caller, served: await versions() });
    if (!asked?.target.action) throw notFound();
    const timeoutMs = config.taskTimeout * 1000;
    const make = (again: Asked, ask: Ask) => act(again, within(again, ask));
    const key = readIdempotencyKey(request.headers);
    const change = key === null ? null : await resourceChange(asked, { key, make });
    return {
      transact: (work) => database.transaction(contextFor(asked), work, { timeoutMs }),
      execute: async (ask) => {
        try {
          return await (change ? onceWithin(change, ask) : make(asked, ask));
        } catch (thrown) {
          throw refused.explain(thrown, asked);
        }
      },
    };
  };

  return {
    handle,
    has: (name) => addresses().find(name) !== undefined,
    prepareTask: undertake,
    explainError: (thrown, { role }) =>
      explain(thrown, {
        anonymous: role === config.anonRole,
        catalog: current(),
        version: 1,
        collection: null,
        sent: () => [],
      }),
  };
}

function perform(asked: Asked, exchange: Exchange): Promise<GatewayResponse> {
  const { target, request, caller, settings } = asked;
  const { may } = target.collection;
  const { ask } = exchange;
  // Of a role that is not in the catalogue Postgres itself says whether there is one.
  const isKnown = asked.catalog.roles.has(caller.role);
  const permitted = (isPermitted: boolean) => {
    if (isKnown && !isPermitted) throw notPermitted({ anonymous: caller.role === settings.anonRole });
  };
  if (target.action) return act(asked, ask);
  switch (request.method) {
    case "POST":
      permitted(may.create);
      return create(asked, exchange);
    case "PUT":
    case "PATCH":
      permitted(may.update);
      return change(asked, ask);
    case "DELETE":
      permitted(may.delete);
      return remove(asked, ask);
    default:
      permitted(may.read);
      return target.key === null ? readList(asked, ask) : readRow(asked, ask);
  }
}

function methodsOf({ target: { collection, key, action } }: Asked): readonly string[] {
  if (action) return ["OPTIONS", "POST"];
  return key === null ? collection.methods.collection : collection.methods.row;
}

function changesNothing(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** Addresses are lower case, with hyphens and without a slash at their end. What changes something is not sent on. */
function moved({ request: { method, rawQuery }, address: { canonical }, settings }: Asked): GatewayResponse {
  if (!changesNothing(method)) {
    throw new ApiError(404, "RESOURCE_NOT_FOUND", `There is nothing at this address: it is ${canonical}.`);
  }
  const location = publicPath(settings.publicUrl) + canonical;
  return { status: 301, headers: { Location: rawQuery ? `${location}?${rawQuery}` : location }, body: null };
}

type Told = { readonly body: unknown; readonly page: number | null; readonly total: number | null };

function toRows({ body, page, total }: Told): Rows {
  return { text: String(body), count: page ?? 0, total };
}
