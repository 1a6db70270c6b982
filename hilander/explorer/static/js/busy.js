// Open requests of the page: <main data-busy> is set until all of them are answered.

let waiting = 0;

function count(by) {
  waiting += by;
  const main = document.getElementById("main");
  if (waiting) main.dataset.busy = waiting;
  else delete main.dataset.busy;
}

export async function during(work) {
  count(1);
  try {
    return await work;
  } finally {
    // Later, so that code that awaits this answer can send its next request first.
    setTimeout(() => count(-1));
  }
}

// Answers can arrive in another order than their requests were sent. Returns null for an answer to an
// older request, so that it does not replace a newer answer.
export function newestOnly() {
  let latest = 0;
  return async (answer) => {
    const mine = ++latest;
    try {
      const found = await answer;
      return mine === latest ? found : null;
    } catch (error) {
      if (mine === latest) throw error;
      return null;
    }
  };
}
