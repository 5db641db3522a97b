"""The client of Ditto: beside the common model, a model of its own that is pulled towards it.

    v <- v - lr (gradient of the own loss at v + pull (v - x))

Li, Hu, Beirami, Smith: Ditto: fair and robust federated learning through personalization (2021), Algorithm 1. The own
model walks through the same batches as the common one.
"""

from confrere.clients.batches import Plan
from confrere.clients.gradient import pulled, with_l2
from confrere.clients.sgd import local_optimizer, train
from confrere.core import Client, Loss


def ditto(client: Client, loss: Loss, lr, pull, plan: Plan, momentum=None, weight_decay=None, l2=None) -> Client:
    """The same client, whose personal model is trained beside the common one and pulled towards it.

    pull = 0 is training alone; the larger it is, the closer the personal model stays to the common one.
    """
    tx = local_optimizer(lr, momentum, weight_decay)
    own_loss = with_l2(loss, l2)

    def init(params):
        shared, private = client.init(params)
        return shared, (private, params)

    def update(inbox, private, data, ctx):
        count, own = private
        message, new = client.update(inbox, count, data, ctx)
        towards = pulled(own_loss, inbox.shared["x"], pull)
        return message, (new, train(towards, tx, own, data, plan, count, ctx.key))

    return Client(init, update, lambda inbox, private, data: private[1])
