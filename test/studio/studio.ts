import jwt from "jsonwebtoken";
import pg from "pg";
import type { Browser, BrowserContext, Page, Request } from "playwright-core";
import { expect } from "vitest";
import { type MigrationWatch, watchMigrations } from "../../migrate/watch-migrations.ts";
import type { Service } from "../../service/wiring/service.ts";
import { launchBrowser, STEP_TIMEOUT_MS } from "../browser.ts";
import { cloneDatabase, type DatabaseTemplate, type TestDatabase } from "../database.ts";
import { SECRET } from "../secret.ts";
import { serve } from "../serve.ts";

export { describeInBrowser } from "../browser.ts";

export type StudioOptions = {
  readonly settings?: Readonly<Record<string, string>>;
  readonly template?: DatabaseTemplate;
  /** Applies the files of the current migration on every save, as `npm run dev` does; to be set with MIGRATIONS_DIR. */
  readonly isDevelopment?: boolean;
  /** SQL that the owner runs before the service starts. */
  readonly schema?: string;
  /** The address that is opened first. */
  readonly path?: string;
  readonly width?: number;
  readonly scheme?: "light" | "dark";
};

export type SentRequest = {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
};

/** A service, and a browser that shows its Studio as an administrator. */
export type OpenStudio = {
  readonly page: Page;
  readonly browser: Browser;
  readonly service: Service;
  readonly database: TestDatabase;
  /** The requests of the pages, in order. */
  readonly requests: readonly SentRequest[];
  /** Runs a statement as the owner of the database. */
  sql<Row extends pg.QueryResultRow>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Opens another page of the same browser, signed in. */
  open(path: string, view?: Pick<StudioOptions, "width" | "scheme">): Promise<Page>;
  /** Stops all, and fails if a page sent an undocumented request, or if its console has errors. */
  close(): Promise<void>;
};

/** Interfaces whose paths depend on the schema, or that have a document of their own. */
const INTERFACES = /^\/(studio|rest\/v1|graphql|realtime\/v1|auth\/v1|storage\/v1|users|api\/v\d+)(\/|$)/;
/** Pages request it to find out whether the service has accounts. */
const CSRF_TOKEN = "GET /csrf-token";
const NEEDS_NO_TOKEN = /^\/(studio(\/|$)|csrf-token$|storage\/v1\/object\/sign\/|admin\/v1\/session$)/;
/** Browsers report each response with a status of an error, which a page may expect and show. */
const STATUS_REPORT = /^Failed to load resource: the server responded with a status of/;

export async function openStudio(options: StudioOptions = {}): Promise<OpenStudio> {
  const { settings = {}, template, isDevelopment = false, schema, path = "/studio" } = options;
  const database = await cloneDatabase(template);
  const owner = new pg.Client({ connectionString: database.ownerUrl });
  await owner.connect();
  if (schema) await owner.query(schema);
  let watch: MigrationWatch | null = null;
  const migrationWatch = () => watch;
  const service = await serve(database, { STUDIO: "open", STUDIO_SQL: "on", ...settings }, { migrationWatch });
  if (isDevelopment) watch = watchMigrations(service.postgres.migrate, () => {});
  const browser = await launchBrowser();
  const context = await browser.newContext();
  const observed = new ObservedPages(service.url, await readDocumentedRoutes(service.url));
  const open: OpenStudio["open"] = async (at, view = {}) => {
    const page = await newPage(context);
    await page.setViewportSize({ width: view.width ?? 1300, height: 900 });
    await page.emulateMedia({ colorScheme: view.scheme ?? "light" });
    page.setDefaultTimeout(STEP_TIMEOUT_MS);
    observed.add(page);
    await page.goto(service.url + at);
    await signIn(page);
    return page;
  };
  const page = await open(path, options);
  return {
    page,
    browser,
    service,
    database,
    requests: observed.requests,
    open,
    async sql<Row extends pg.QueryResultRow>(text: string, values?: unknown[]) {
      return (await owner.query<Row>(text, values)).rows;
    },
    async close() {
      await browser.close();
      await watch?.stop();
      await service.stop();
      await owner.end();
      await database.drop();
      await observed.check();
    },
  };
}

/**
 * A page that finds nothing that others have stored. Pages share the files of Studio. The name of a window
 * lasts as long as its tab: DevTools would also clear what the other tabs have stored for themselves.
 */
async function newPage(context: BrowserContext): Promise<Page> {
  await context.clearCookies();
  const page = await context.newPage();
  await page.addInitScript(`
    if (self === top && location.protocol.startsWith("http") && window.name !== "studio") {
      localStorage.clear();
      window.name = "studio";
    }`);
  return page;
}

/** The path of a file of the edition that the page has loaded. `common.js` exports what several parts of Studio use. */
export async function modulePath(page: Page, name: string): Promise<string> {
  const main = await page.locator("script[type=module]").getAttribute("src");
  return main!.replace("main.js", name);
}

/** Signs in with the token of an administrator if the service does not give one to whoever opens the page. */
export async function signIn(page: Page): Promise<void> {
  await page.locator(".frame, .sign-in").waitFor();
  if ((await page.locator(".sign-in").count()) === 0) return;
  const token = jwt.sign({ role: "admin" }, SECRET, { expiresIn: "15 minutes" });
  await page.getByLabel("Access token").fill(token);
  await page.getByRole("button", { name: "Use the token" }).click();
  await page.locator(".frame").waitFor();
}

/** Finds out whether a method and path are in the service's OpenAPI document. */
export type DocumentedRoutes = (method: string, path: string) => boolean;

export async function readDocumentedRoutes(url: string): Promise<DocumentedRoutes> {
  const { paths } = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, object> };
  const routes = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => {
      const pattern = path.split("/").map((segment) => (segment.startsWith("{") ? "[^/]+" : RegExp.escape(segment)));
      return { method: method.toUpperCase(), pattern: new RegExp(`^${pattern.join("/")}$`) };
    }),
  );
  return (method, path) => routes.some((route) => route.method === method && route.pattern.test(path));
}

/** Records the requests of pages, and the complaints of browsers. */
class ObservedPages {
  readonly requests: SentRequest[] = [];
  readonly #complaints: string[] = [];
  readonly #origin: string;
  readonly #isDocumentedRoute: DocumentedRoutes;

  constructor(origin: string, isDocumentedRoute: DocumentedRoutes) {
    this.#origin = origin;
    this.#isDocumentedRoute = isDocumentedRoute;
  }

  add(page: Page): void {
    page.on("console", (message) => {
      const isExpected = STATUS_REPORT.test(message.text());
      if (message.type() === "error" && !isExpected) this.#complaints.push(message.text());
    });
    page.on("pageerror", (error) => this.#complaints.push(String(error)));
    page.on("request", (request) => this.#record(request));
  }

  async check(): Promise<void> {
    const foreign = this.requests
      .filter((request) => !this.#isDocumented(request))
      .map(({ method, url }) => `${method} ${url}`);
    const unauthorized = this.requests
      .filter(({ url, headers }) => !NEEDS_NO_TOKEN.test(new URL(url).pathname) && !this.#hasToken(headers))
      .map(({ method, url }) => `${method} ${url}`);
    expect({ complaints: this.#complaints, foreign, unauthorized }).toEqual({
      complaints: [],
      foreign: [],
      unauthorized: [],
    });
  }

  #record(request: Request): void {
    const url = request.url();
    if (!url.startsWith("http")) return;
    this.requests.push({ method: request.method(), url, headers: request.headers(), body: request.postData() });
  }

  #isDocumented({ method, url }: SentRequest): boolean {
    const { origin, pathname } = new URL(url);
    if (origin !== this.#origin) return false;
    if (INTERFACES.test(pathname) || `${method} ${pathname}` === CSRF_TOKEN) return true;
    return this.#isDocumentedRoute(method, pathname);
  }

  #hasToken(headers: SentRequest["headers"]): boolean {
    return isSigned(headers.authorization?.replace(/^Bearer /, "") ?? "");
  }
}

/** Only the service has the secret, which signs the tokens that it gives to pages. */
function isSigned(token: string): boolean {
  try {
    jwt.verify(token, SECRET, { ignoreExpiration: true });
    return true;
  } catch {
    return false;
  }
}
