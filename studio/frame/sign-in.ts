import { useState } from "preact/hooks";
import { type SessionState, sessionState, signInWithToken } from "../api/session.ts";
import { Button } from "../components/button.ts";
import { TextField } from "../components/field.ts";
import { Notice } from "../components/notice.ts";
import { Loading } from "../components/page.ts";
import { ProductMark, productName } from "../components/product-mark.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

/** The page without a session: a link to the sign-in page, and a field for a token. */
export function SignIn({ state }: { state: Exclude<SessionState, { status: "signed-in" }> }) {
  if (state.status === "starting") return html`<${Loading} text=${texts.signIn.starting} />`;
  const here = window.location.pathname + window.location.search;
  return html`
    <main id="content" class="sign-in" tabindex="-1">
      <p class="product"><${ProductMark} /> ${productName()}</p>
      <h1>${texts.signIn.title}</h1>
      <p>${texts.signIn.intro}</p>
      ${state.error && html`<${Notice} kind="error" error=${state.error} />`}
      ${state.obstacle && html`<${Notice} kind="warning"><p>${texts.signIn.obstacles[state.obstacle]}</p><//>`}
      ${
        state.obstacle !== "no accounts" &&
        html`
          <a class="button primary" href=${`/auth/sign-in?redirect_to=${encodeURIComponent(here)}`}>${texts.signIn.signIn}</a>
          <p class="divider">${texts.signIn.or}</p>
        `
      }
      <${TokenForm} />
    </main>
  `;
}

function TokenForm() {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    await signInWithToken(token.trim());
    const state = sessionState.get();
    if (state.status === "signed-in") return;
    setBusy(false);
    if (state.status === "signed-out" && state.error === null) setError(texts.signIn.tokenRefused);
  };
  return html`
    <form class="stack" onSubmit=${submit}>
      <${TextField}
        label=${texts.signIn.token}
        type="password"
        autocomplete="off"
        required
        value=${token}
        error=${error}
        onInput=${setToken}
      />
      <${Button} type="submit" busy=${isBusy}>${texts.signIn.useToken}<//>
    </form>
  `;
}
