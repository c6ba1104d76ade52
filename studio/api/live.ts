import { RealtimeClient } from "./realtime.ts";
import { sessionState, viewedToken } from "./session.ts";

let client: RealtimeClient | null = null;

/** The socket of the caller whose rows are shown; it follows renewed tokens and other callers. */
export function liveChanges(): RealtimeClient {
  client ??= openClient();
  return client;
}

function openClient(): RealtimeClient {
  const opened = new RealtimeClient({ address: location.origin.replace(/^http/, "ws"), token: viewedToken });
  let [caller, token] = [callerText(), viewedToken()];
  sessionState.subscribe(() => {
    const [nextCaller, nextToken] = [callerText(), viewedToken()];
    if (nextCaller !== caller) opened.changeCaller();
    else if (nextToken !== token) opened.renewToken();
    [caller, token] = [nextCaller, nextToken];
  });
  return opened;
}

/** The same text as long as the rows are those of the same caller. */
function callerText(): string {
  const state = sessionState.get();
  if (state.status !== "signed-in") return "";
  return JSON.stringify(state.viewAs ? [state.viewAs.role, state.viewAs.label] : [state.session.role]);
}
