/** The user's session, as the service's own routes for sign-in return it. */
export class Session {
  #serviceUrl;
  #apiKey;
  #pair = JSON.parse(sessionStorage.getItem("session"));

  constructor(serviceUrl, apiKey) {
    this.#serviceUrl = serviceUrl;
    this.#apiKey = apiKey;
  }

  /** Null if nobody is signed in. */
  get user() {
    if (!this.#pair) return null;
    const { sub, name } = JSON.parse(atob(this.#pair.accessToken.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")));
    return { id: Number(sub), name };
  }

  get headers() {
    return { apikey: this.#apiKey, Authorization: `Bearer ${this.#pair.accessToken}` };
  }

  async signIn(username, password) {
    const response = await fetch(`${this.#serviceUrl}/auth/login`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ username, password }),
    });
    const body = await response.json();
    if (!response.ok) throw new Error(body.error.message);
    this.#pair = body;
    sessionStorage.setItem("session", JSON.stringify(body));
  }
}
