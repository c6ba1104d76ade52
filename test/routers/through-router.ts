import { inject } from "vitest";
import type { TestDatabase } from "../database.ts";
import type { Router } from "./router.ts";

type RunningRouter = Pick<Router, "port" | "settings">;
type DatabaseUrls = Pick<TestDatabase, "url" | "ownerUrl">;

declare module "vitest" {
  interface ProvidedContext {
    /** The router of this run, with the environment variable ROUTER. */
    router: RunningRouter | null;
  }
}

/** The settings for this database: through the run's router, if it has one and the database is of the run's cluster. */
export function settingsOf(urls: DatabaseUrls): NodeJS.ProcessEnv {
  const router = inject("router");
  if (router && urls.url.endsWith(new URL(inject("clusterUrl").replace("@/", "@localhost/")).search)) {
    return settingsThrough(router, urls);
  }
  return { DATABASE_URL: urls.url, OWNER_DATABASE_URL: urls.ownerUrl };
}

/** The owner's connections too where ROUTER_OWNER is set, except for what requires a session. */
export function settingsThrough({ port, settings }: RunningRouter, { url, ownerUrl }: DatabaseUrls): NodeJS.ProcessEnv {
  const owner = process.env.ROUTER_OWNER ? urlThrough(port, ownerUrl) : ownerUrl;
  return {
    DATABASE_URL: urlThrough(port, url),
    OWNER_DATABASE_URL: owner,
    DIRECT_DATABASE_URL: ownerUrl,
    ...settings,
  };
}

function urlThrough(port: number, url: string): string {
  const { username, pathname } = new URL(url.replace("@/", "@localhost/"));
  return `postgresql://${username}@127.0.0.1:${port}${pathname}`;
}
