// Asks the authenticator for a passkey or a new one, and submits its response. Pressing the button asks again.

const form = document.getElementById("passkey");
const failure = document.getElementById("failure");
const { step, options } = form.dataset;

form.addEventListener("submit", (event) => {
  if (form.elements.credential.value !== "") return;
  event.preventDefault();
  askAuthenticator();
});
askAuthenticator();

async function askAuthenticator() {
  failure.hidden = true;
  try {
    const publicKey = toBinary(JSON.parse(options));
    const credential = await navigator.credentials[step]({ publicKey });
    form.elements.credential.value = JSON.stringify(toJson(credential));
    form.submit();
  } catch (error) {
    failure.textContent =
      error.name === "InvalidStateError"
        ? "This device has a passkey for your account already."
        : "The passkey was not used. Try again, or cancel.";
    failure.hidden = false;
  }
}

function toBinary({ challenge, user, excludeCredentials = [], allowCredentials = [], ...others }) {
  const withBytes = (descriptor) => ({ ...descriptor, id: toBytes(descriptor.id) });
  return {
    ...others,
    challenge: toBytes(challenge),
    ...(user && { user: withBytes(user), excludeCredentials: excludeCredentials.map(withBytes) }),
    ...(!user && { allowCredentials: allowCredentials.map(withBytes) }),
  };
}

function toJson({ id, rawId, type, response, authenticatorAttachment }) {
  const { clientDataJSON, attestationObject, authenticatorData, signature, userHandle } = response;
  const binary = { clientDataJSON, attestationObject, authenticatorData, signature, userHandle };
  const sent = Object.entries(binary).flatMap(([name, bytes]) => (bytes ? [[name, toText(bytes)]] : []));
  return {
    id,
    rawId: toText(rawId),
    type,
    authenticatorAttachment,
    clientExtensionResults: {},
    response: { ...Object.fromEntries(sent), transports: response.getTransports?.() },
  };
}

function toBytes(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (sign) => sign.charCodeAt(0));
}

function toText(bytes) {
  const text = btoa(String.fromCharCode(...new Uint8Array(bytes)));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}
